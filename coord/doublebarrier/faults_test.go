package doublebarrier_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/zkembed"
)

// lasts is longer than anything takes that no fault holds up, and shorter than
// what makes a session end.
const lasts = 2 * time.Second

// pool opens n clients and returns them with each one's view of the barrier /b.
func (b bubble) pool(clients, n int, opts ...doublebarrier.Option) ([]*coord.Client, []*doublebarrier.Barrier) {
	b.Helper()
	var cs []*coord.Client
	var bs []*doublebarrier.Barrier
	for range clients {
		cs = append(cs, b.Open())
		bs = append(bs, barrier(b, cs[len(cs)-1], "/b", n, opts...))
	}
	return cs, bs
}

// enter calls Enter for each, one after the other, each when the ones before
// have done what they can.
func (b bubble) enter(bs ...*doublebarrier.Barrier) (all []<-chan outcome[*doublebarrier.Member]) {
	for _, each := range bs {
		all = append(all, entering(b.Context(), each))
		time.Sleep(lasts)
	}
	return all
}

// kill ends a process as a crash does, with its session.
func (b bubble) kill(c *coord.Client) {
	b.Helper()
	require.NoError(b, b.Server.ExpireSession(c.SessionID()))
	b.Close(c)
}

func (b bubble) leaveAll(want error, entered ...<-chan outcome[*doublebarrier.Member]) {
	b.Helper()
	var left []<-chan error
	for _, e := range entered {
		o := <-e
		require.NoError(b, o.err)
		left = append(left, leaving(b.Context(), o.value))
	}
	for _, l := range left {
		require.Equal(b, want, <-l)
	}
}

// Whatever single request is lost, or its reply: three members get through two
// rounds, and every member finishes.
func TestNoSingleLossHangsOrSplitsARound(t *testing.T) {
	for name, apart := range map[string]bool{"listed along": false, "listed apart": true} {
		t.Run(name, func(t *testing.T) { require.Greater(t, loseEach(t, apart), 50) })
	}
}

// loseEach returns how many requests and replies were lost.
func loseEach(t *testing.T, apart bool) (struck int) {
	losses := map[string]zkembed.Action{"request": zkembed.Drop(), "reply": zkembed.LoseReply()}
	ops := []zkembed.Op{
		zkembed.OpCreate, zkembed.OpCreateContainer, zkembed.OpMulti, zkembed.OpSetData, zkembed.OpDelete,
		zkembed.OpGetData, zkembed.OpExists, zkembed.OpGetChildren2,
	}
	for name, loss := range losses {
		for _, op := range ops {
			for skip, more := 0, true; more; skip++ {
				t.Run(fmt.Sprint(op, " ", skip, " ", name), func(t *testing.T) {
					inBubble(t, func(t *testing.T, b bubble) {
						cs, bs := b.pool(3, 3)
						for _, each := range bs {
							if apart {
								each.ListApart()
							}
						}
						fault := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{op}, Skip: skip, Times: 1}, loss)
						for range 2 {
							var all []<-chan outcome[*doublebarrier.Member]
							for _, each := range bs {
								all = append(all, entering(b.Context(), each))
							}
							b.leaveAll(nil, all...)
						}
						b.Close(cs...)
						more = fault.Fired() > 0
						struck += fault.Fired()
					})
				})
			}
		}
	}
	return struck
}

func TestARoundBeginsOnlyWhileAllItsMembersAreThere(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(3, 2)
		b.enter(bs[0])
		slow := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/b", Times: 1}, zkembed.Delay(2*lasts))
		second := b.enter(bs[1])[0]
		<-slow.Struck()
		b.kill(cs[0])
		time.Sleep(3 * lasts)
		pending(t, second, "entered with a dead one")
		third := b.enter(bs[2])[0]
		b.leaveAll(nil, second, third)
		b.Close(cs[1:]...)
	})
}

func TestWhenOneOfTooManyDiesBeforeTheRoundBeginsAnotherTakesItsPlaceAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(3, 2)
		b.enter(bs[0])
		slow := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/b", Times: 2}, zkembed.Delay(3*lasts))
		rest := b.enter(bs[1:]...)
		require.Equal(t, 2, slow.Fired())
		b.kill(cs[0])
		b.leaveAll(nil, rest...)
		b.Close(cs[1:]...)
	})
}

// It goes while the transaction that is to begin the round is on its way.
func TestAReadyThatGoesBeforeTheRoundBeginsIsMadeAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(2, 1)
		b.leaveAll(nil, b.enter(bs[0])...)
		slow := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/b", Times: 1}, zkembed.Delay(2*lasts))
		only := b.enter(bs[0])[0]
		<-slow.Struck()
		require.NoError(t, cs[1].Delete(b.Context(), "/b/ready", -1))
		b.leaveAll(nil, only)
		b.Close(cs...)
	})
}

func TestOneMemberTooManyIsToldSo(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(3, 2)
		first := b.enter(bs[0])[0]
		b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/b", Times: 2}, zkembed.Delay(3*lasts))
		rest := b.enter(bs[1:]...)
		require.ErrorIs(t, (<-rest[1]).err, doublebarrier.ErrLate)
		b.leaveAll(nil, first, rest[0])
		b.Close(cs...)
	})
}

// The list that was made along with its create shows the members of the round
// that began just before, and they die before it has read of that.
func TestAMemberIsNotLateForARoundThatCrashedAsItCame(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(4, 2)
		first := b.enter(bs[0])[0]
		b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/b", Times: 1}, zkembed.Delay(lasts+lasts/10))
		second := b.enter(bs[1])[0]
		b.Server.Inject(zkembed.Match{Session: cs[2].SessionID(), Ops: []zkembed.Op{zkembed.OpCreate}, Times: 1}, zkembed.Delay(lasts/5))
		slow := b.Server.Inject(zkembed.Match{
			Session: cs[2].SessionID(), Ops: []zkembed.Op{zkembed.OpGetData}, PathPrefix: "/b/ready", Skip: 1, Times: 1,
		}, zkembed.Delay(lasts/2))
		third := entering(b.Context(), bs[2])
		b.inside(first, second)
		<-slow.Struck()
		b.kill(cs[0])
		b.kill(cs[1])
		time.Sleep(lasts)
		pending(t, third, "came to an end")
		b.leaveAll(nil, third, b.enter(bs[3])[0])
		b.Close(cs[2:]...)
	})
}

func TestAMemberThatWaitsForTheNextRoundGetsAPlaceInTheOrderOfArrival(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(8, 2, doublebarrier.WaitForNextRound())
		all := b.enter(bs...)
		for r := range 4 {
			pair := []<-chan outcome[*doublebarrier.Member]{all[2*r], all[2*r+1]}
			for i, e := range pair {
				o := <-e
				require.NoError(t, o.err)
				require.EqualValues(t, r+1, o.value.Round())
				require.Equal(t, i, o.value.Index())
				again := make(chan outcome[*doublebarrier.Member], 1)
				again <- o
				pair[i] = again
			}
			for _, later := range all[2*r+2:] {
				pending(t, later, "entered before its turn")
			}
			b.leaveAll(nil, pair...)
			synctest.Wait()
		}
		b.Close(cs...)
	})
}

// A member that hears of the end only when later rounds have come and gone
// still gets its round's outcome.
func TestTheOutcomeIsKeptForAMemberThatIsSlowToReadIt(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(5, 3)
		all := b.enter(bs[:3]...)
		var ms []*doublebarrier.Member
		for _, e := range all {
			ms = append(ms, (<-e).value)
		}
		b.kill(cs[1])
		slow := leaving(t.Context(), ms[2])
		synctest.Wait()
		cut := b.Server.Partition(zkembed.Cut{Sessions: []int64{cs[2].SessionID()}, Direction: zkembed.ToClient})
		told := ms[0].Leave(b.Context())
		requireMissing(t, told, 1)
		for range 3 {
			b.leaveAll(nil, entering(b.Context(), bs[0]), entering(b.Context(), bs[3]), entering(b.Context(), bs[4]))
		}
		pending(t, slow, "left though it cannot have heard of it")
		cut.Heal()
		require.Equal(t, told, <-slow)
		b.leaveAll(nil, entering(b.Context(), bs[0]), entering(b.Context(), bs[3]), entering(b.Context(), bs[4]))
		data, _, err := cs[0].Get(b.Context(), "/b/ready")
		require.NoError(t, err)
		require.NotContains(t, string(data), "past", "nobody is left to read it")
		b.Close(cs[0], cs[2], cs[3], cs[4])
	})
}

func TestANewcomerAtALaggingServerIsNotTakenForALateOne(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(4, 2)
		b.Server.AddFollower(2*time.Second, cs[2].SessionID())
		members := b.enter(bs[:2]...)
		b.leaveAll(nil, members...)
		// For two seconds its server shows the round open and its members
		// there.
		third := entering(b.Context(), bs[2])
		time.Sleep(lasts)
		pending(t, third, "came to an end")
		b.leaveAll(nil, third, entering(b.Context(), bs[3]))
		b.Close(cs...)
	})
}

func TestEveryCallEndsWithItsContextWhateverTheServerDoes(t *testing.T) {
	const limit, grace = time.Second, 50 * time.Millisecond
	// Each call is given up after each of its steps, the server answering
	// nothing any more from then on, or only late.
	for name, trouble := range map[string]func(srv *zkembed.Server) (heal func()){
		"silent": func(srv *zkembed.Server) func() { return srv.Partition(zkembed.Cut{}).Heal },
		"down":   func(srv *zkembed.Server) func() { srv.Stop(); return srv.Resume },
		"slow": func(srv *zkembed.Server) func() {
			return srv.Inject(zkembed.Match{}, zkembed.Delay(2*limit)).Remove
		},
	} {
		for step := range 8 {
			t.Run(fmt.Sprint(name, " after ", step), func(t *testing.T) {
				inBubble(t, func(t *testing.T, b bubble) {
					cs, bs := b.pool(3, 2)
					b.leaveAll(nil, entering(b.Context(), bs[0]), entering(b.Context(), bs[1]))
					b.Server.Inject(zkembed.Match{}, zkembed.Delay(time.Millisecond))
					ctx := b.Within(limit)
					begun := time.Now()
					enter := entering(ctx, bs[0])
					time.Sleep(time.Duration(step)*time.Millisecond + 500*time.Microsecond)
					heal := trouble(b.Server)
					require.ErrorIs(t, (<-enter).err, context.DeadlineExceeded)
					require.LessOrEqual(t, time.Since(begun), limit+grace)
					heal()
					time.Sleep(T)
					empty(t, bs[1])

					b.Close(cs...)
				})
			})
		}
	}
}

func TestALeaveEndsWithItsContextWhateverTheServerDoes(t *testing.T) {
	const limit, grace = time.Second, 50 * time.Millisecond
	for step := range 8 {
		t.Run(fmt.Sprint("silent after ", step), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b bubble) {
				cs, bs := b.pool(2, 2)
				all := b.enter(bs...)
				first, second := (<-all[0]).value, (<-all[1]).value
				b.Server.Inject(zkembed.Match{}, zkembed.Delay(time.Millisecond))
				ctx := b.Within(limit)
				begun := time.Now()
				left := leaving(ctx, first)
				time.Sleep(time.Duration(step)*time.Millisecond + 500*time.Microsecond)
				cut := b.Server.Partition(zkembed.Cut{Sessions: []int64{cs[0].SessionID()}})
				require.ErrorIs(t, <-left, context.DeadlineExceeded)
				require.LessOrEqual(t, time.Since(begun), limit+grace)
				cut.Heal()
				requireMissing(t, second.Leave(b.Context()), 0)
				time.Sleep(T)
				empty(t, bs[1])
				b.Close(cs...)
			})
		})
	}
}

func TestClosingTheClientEndsWhoWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, b bubble) {
		cs, bs := b.pool(3, 2)
		alone := b.enter(bs[0])[0]
		b.Close(cs[0])
		require.ErrorIs(t, (<-alone).err, coord.ErrClosed)
		members := b.enter(bs[1:]...)
		early := leaving(b.Context(), (<-members[0]).value)
		synctest.Wait()
		b.Close(cs[1])
		require.ErrorIs(t, <-early, coord.ErrClosed)
		requireMissing(t, (<-members[1]).value.Leave(b.Context()), 0)
		b.Close(cs[2])
	})
}

// Of many who wait for the next round, only the first hears of the going of the
// members inside.
func TestThoseWhoWaitForTheNextRoundAreNoHerd(t *testing.T) {
	const n, many = 10, 60
	inCalm(t, n+many, func(t *testing.T, b bubble, clients []*coord.Client) {
		var bs []*doublebarrier.Barrier
		for _, c := range clients {
			bs = append(bs, barrier(t, c, "/b", n, doublebarrier.WaitForNextRound()))
		}
		inside := b.enter(bs[:n]...)
		waiters := b.enter(bs[n:]...)
		rest := clients[n:]
		deaths := b.phase(rest, func(i int) {
			if i < n-1 {
				require.NoError(t, b.Server.ExpireSession(clients[i].SessionID()))
			}
		})
		require.Less(t, total(deaths), 3*n+3)
		require.Equal(t, spent{}, deaths[1], "the second who waits")
		require.Equal(t, spent{}, ordinary(deaths))
		last := (<-inside[n-1]).value
		missing := []int{0, 1, 2, 3, 4, 5, 6, 7, 8}
		end := b.phase(rest, func(i int) {
			if i == 0 {
				requireMissing(t, last.Leave(b.Context()), missing...)
			}
		})
		require.LessOrEqual(t, ordinary(end[1:]).requests, 6)
		require.LessOrEqual(t, ordinary(end[1:]).wakeUps, 2)
		for _, w := range waiters[:n] {
			require.EqualValues(t, 2, (<-w).value.Round())
		}
		pending(t, waiters[n], "one too many entered")
		b.Close(rest[n:]...)
		for _, w := range waiters[n:] {
			require.ErrorIs(t, (<-w).err, coord.ErrClosed)
		}
		b.Close(clients[:2*n]...)
	})
}

// oneWay is how long a packet is on its way over a far link, tour there and
// back.
const (
	oneWay = 2 * time.Millisecond
	tour   = 2 * oneWay
)

// far is a connection over a link that delays each packet.
type far struct {
	net.Conn
	out, in chan packet
	rest    []byte
	once    sync.Once
	closed  chan struct{}
}

type packet struct {
	due  time.Time
	data []byte
	err  error
}

func newFar(c net.Conn) *far {
	f := &far{Conn: c, closed: make(chan struct{}), out: make(chan packet, 1<<8), in: make(chan packet, 1<<8)}
	go func() {
		for {
			select {
			case <-f.closed:
				return
			case p := <-f.out:
				time.Sleep(time.Until(p.due))
				if _, err := c.Write(p.data); err != nil {
					return
				}
			}
		}
	}()
	go func() {
		defer close(f.in)
		for {
			data := make([]byte, 1<<16)
			n, err := c.Read(data)
			f.in <- packet{time.Now().Add(oneWay), data[:n], err}
			if err != nil {
				return
			}
		}
	}()
	return f
}

func (f *far) Close() error {
	f.once.Do(func() { close(f.closed) })
	return f.Conn.Close()
}

func (f *far) Write(data []byte) (int, error) {
	f.out <- packet{due: time.Now().Add(oneWay), data: append([]byte(nil), data...)}
	return len(data), nil
}

func (f *far) Read(data []byte) (int, error) {
	for len(f.rest) == 0 {
		p, open := <-f.in
		if !open {
			return 0, net.ErrClosed
		}
		time.Sleep(time.Until(p.due))
		if p.err != nil {
			return 0, p.err
		}
		f.rest = p.data
	}
	n := copy(data, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// distant opens n clients over such links.
func (b bubble) distant(n int) (clients []*coord.Client) {
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := b.Server.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return newFar(c), nil
	}
	for range n {
		clients = append(clients, b.Open(coord.WithSessionTimeout(calm), coord.WithDialer(dial)))
	}
	return clients
}

func TestARoundTakesAConstantAndSmallNumberOfRoundTripsInARow(t *testing.T) {
	for _, n := range []int{8, 32, 40} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b bubble) {
				inARow(t, b, b.distant(n))
			}, zkembed.WithSessionTimeouts(0, calm))
		})
	}
}

// inARow has the clients enter and leave a barrier, all together except for a
// last one, and counts their requests and the round trips of the slowest.
func inARow(t *testing.T, b bubble, clients []*coord.Client) {
	n := len(clients)
	members := make([]*doublebarrier.Member, n) // by index
	enter := func(i int) {
		m, err := barrier(t, clients[i], "/b", n).Enter(b.Context())
		require.NoError(t, err)
		members[m.Index()] = m
	}
	leave := func(i int) { require.NoError(t, members[i].Leave(b.Context())) }
	toEnter, each := time.Duration(5), 9*n // requests in a round that all come to and leave together
	if n <= doublebarrier.Small {
		toEnter, each = 4, 10*n
	}
	phase := func(what string, most time.Duration, last int, f func(i int)) (requests int) {
		var all sync.WaitGroup
		begun := time.Now()
		spent := b.phase(clients, func(i int) {
			switch {
			case last < 0:
				f(i)
			case i != last:
				all.Go(func() { f(i) })
			default:
				time.Sleep(time.Second)
				begun = time.Now()
				f(i)
				all.Wait()
			}
		})
		rounds := (time.Since(begun) - time.Second) / tour
		t.Logf("%s: %d round trips, %.2f requests per member", what, rounds, float64(total(spent))/float64(n))
		require.LessOrEqual(t, rounds, most, what)
		return total(spent)
	}
	b.phase(clients, enter) // which makes the barrier
	b.phase(clients, leave)
	for range 2 {
		requests := phase("all enter", toEnter, -1, enter) + phase("all leave", 5, -1, leave)
		require.LessOrEqual(t, requests, each+n/4)
		requests = phase("one enters last", toEnter, 0, enter) + phase("one leaves last", 5, n-1, leave)
		require.LessOrEqual(t, requests, each+2*n)
		requests = phase("one enters last", toEnter, n-1, enter) + phase("the monitor leaves last", 5, 0, leave)
		require.LessOrEqual(t, requests, each+2*n)
	}
}
