package election_test

import (
	"context"
	"errors"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// crowd are candidates of one election, which stand one after the other, each
// with a client of its own. Who is elected is told.
type crowd struct {
	coordtest.Bubble
	opts    []coord.Option
	elected chan *election.Term
	clients map[string]*coord.Client
}

func newCrowd(b coordtest.Bubble, opts ...coord.Option) *crowd {
	return &crowd{b, opts, make(chan *election.Term, 100), map[string]*coord.Client{}}
}

// stand has a candidate stand, behind all others.
func (c *crowd) stand(name string, opts ...election.Option) {
	c.Helper()
	c.clients[name] = c.Open(c.opts...)
	e := at(c, c.clients[name], electionPath, opts...)
	go func() {
		if term, err := e.Campaign(c.Context(), []byte(name)); err == nil {
			c.elected <- term
		}
	}()
	time.Sleep(time.Second)
}

// led has candidates without a priority stand, and returns the term of the
// first.
func (c *crowd) led(first string, others ...string) *election.Term {
	c.Helper()
	c.stand(first)
	leader := c.next(first)
	for _, name := range others {
		c.stand(name)
	}
	return leader
}

// next returns the newest term, which is a candidate's of this name.
func (c *crowd) next(name string) *election.Term {
	c.Helper()
	term := zktest.Receive(c, time.Hour, c.elected, "an election")
	leader := coordtest.Call(c, c.any().Leader)
	require.Equal(c, name, string(leader.Data))
	require.Equal(c, term.Node(), leader.Node)
	return term
}

// follow requires that candidates are elected in this order, and no other.
func (c *crowd) follow(before *election.Term, names ...string) {
	c.Helper()
	for _, name := range names {
		require.NoError(c, before.Resign(c.Context()))
		next := c.next(name)
		require.Greater(c, next.Token(), before.Token())
		before = next
	}
	require.NoError(c, before.Resign(c.Context()))
	time.Sleep(time.Minute)
	require.Empty(c, c.elected)
}

func (c *crowd) any() *election.Election {
	c.Helper()
	return at(c, c.Open(c.opts...), electionPath)
}

// node returns the node of a candidate.
func (c *crowd) node(name string) string {
	c.Helper()
	line := coordtest.Call(c, c.any().Contenders)
	at := slices.IndexFunc(line, func(candidate inspect.Contender) bool { return candidate.Owner == name })
	require.GreaterOrEqual(c, at, 0, "no candidate %s", name)
	return line[at].Node
}

// foreign has a candidate of another library stand, behind all others, and
// returns its node and its client.
func (c *crowd) foreign() (node string, other *coord.Client) {
	c.Helper()
	other, name := c.Open(c.opts...), "_c_01234567-89ab-4bcd-8f01-23456789abcd-latch-"
	if other.Info().Dialect == coord.Kazoo {
		name = "0123456789ab4cdef0123456789abcde__lock__"
	}
	made, err := other.Txn(c.Context(), coord.AppendOp(electionPath+"/"+name, []byte("foreign")))
	require.NoError(c, err)
	return made[0].Path, other
}

// inDialects runs a test in both dialects.
func inDialects(t *testing.T, f func(c *crowd)) {
	for _, d := range []coord.Dialect{coord.Curator, coord.Kazoo} {
		t.Run(string(d), func(t *testing.T) {
			coordtest.InBubble(t, func(b coordtest.Bubble) { f(newCrowd(b, coord.WithDialect(d))) })
		})
	}
}

func TestTheCandidateOfTheHighestPriorityLeadsNext(t *testing.T) {
	inDialects(t, func(c *crowd) {
		c.stand("a", election.Priority(1))
		leader := c.next("a")
		c.stand("b", election.Priority(-1))
		c.stand("c", election.Priority(2))
		c.stand("d", election.Priority(10))
		c.stand("e", election.Priority(2))
		time.Sleep(time.Hour)
		require.NoError(c, leader.Err(), "the lead was taken from one who leads")
		require.Empty(c, c.elected)
		c.follow(leader, "d", "e", "c", "b") // c stepped behind d
	})
}

func TestACandidateWithoutPriorityLeadsWhenItsTurnComes(t *testing.T) {
	inDialects(t, func(c *crowd) {
		c.stand("a", election.Priority(1))
		leader := c.next("a")
		c.stand("b", election.Priority(-5))
		c.stand("c")
		c.stand("d")
		c.follow(leader, "b", "c", "d")
	})
}

func TestACandidateWithPriorityThatIsGoneIsNotWaitedFor(t *testing.T) {
	inDialects(t, func(c *crowd) {
		c.stand("a", election.Priority(1))
		leader := c.next("a")
		c.stand("b", election.Priority(2))
		c.stand("c", election.Priority(3))
		cut := c.Server.Partition(zkembed.Cut{Sessions: []int64{c.clients["c"].Info().SessionID}})
		require.NoError(c, leader.Resign(c.Context()))
		c.next("b")
		cut.Heal()
	})
}

func TestALeaderNamesTheNext(t *testing.T) {
	inDialects(t, func(c *crowd) {
		leader := c.led("a", "b")
		c.stand("c", election.Priority(7))
		c.stand("d")
		c.stand("e")
		require.NoError(c, recipe.Retry(c.Context(), c.clients["a"], func(ctx context.Context) error {
			_, err := c.clients["a"].Set(ctx, electionPath, []byte("a directory's own"), -1)
			return err
		}))
		held := leader.Context(c.Context())
		require.NoError(c, leader.Transfer(c.Context(), c.node("d")))
		require.ErrorIs(c, leader.Err(), coord.ErrReleased)
		require.ErrorIs(c, held.Err(), context.Canceled)
		time.Sleep(time.Minute)
		next := c.next("d")
		require.NoError(c, next.Transfer(c.Context(), next.Node()), "to itself")
		require.NoError(c, next.Err())
		data, _, err := c.clients["a"].Get(c.Context(), electionPath)
		require.NoError(c, err)
		require.Regexp(c, "^a directory's own\n", string(data))
		var line []string
		for _, candidate := range coordtest.Call(c, c.any().Contenders)[1:] {
			line = append(line, candidate.Owner)
		}
		require.Equal(c, "e", line[0])
		require.ElementsMatch(c, []string{"b", "c"}, line[1:], "they stepped behind it once, at the same time")
		c.follow(next, line...)
	})
}

// What the directory says about the next need not be this package's.
func TestANameThatIsNoCandidatesHoldsNobodyUp(t *testing.T) {
	inDialects(t, func(c *crowd) {
		leader := c.led("a")
		require.NoError(c, c.clients["a"].Create(c.Context(), electionPath+"/thing", nil))
		_, err := c.clients["a"].Set(c.Context(), electionPath, inspect.Note(nil, "NEXT", "thing"), -1)
		require.NoError(c, err)
		c.stand("b")
		c.follow(leader, "b")
	})
}

func TestOneWhoIsNamedStepsBehindNobody(t *testing.T) {
	inDialects(t, func(c *crowd) {
		c.stand("a", election.Priority(0))
		leader := c.next("a")
		c.stand("b", election.Priority(1))
		c.stand("c", election.Priority(9))
		require.NoError(c, leader.Transfer(c.Context(), c.node("b")))
		c.follow(c.next("b"), "c")
	})
}

func TestATransferToOneWhoIsGoneLeavesTheLeader(t *testing.T) {
	inDialects(t, func(c *crowd) {
		leader := c.led("a", "b", "c")
		gone := c.node("c")
		c.Close(c.clients["c"])
		for _, transfer := range []func(context.Context, string) error{leader.Transfer, c.any().Transfer} {
			for _, candidate := range []string{gone, "nobody", ""} {
				require.ErrorIs(c, transfer(c.Context(), candidate), election.ErrNoCandidate)
			}
		}
		require.NoError(c, leader.Err())
		data, _, err := c.clients["a"].Get(c.Context(), electionPath)
		require.NoError(c, err)
		require.Empty(c, data)
		c.follow(leader, "b")
	})
}

func TestATransferPastOneWhoDoesNotStepAsideIsRefused(t *testing.T) {
	inDialects(t, func(c *crowd) {
		leader := c.led("a", "b")
		foreign, other := c.foreign()
		c.stand("c")
		for _, transfer := range []func(context.Context, string) error{leader.Transfer, c.any().Transfer} {
			err := transfer(c.Context(), c.node("c"))
			require.ErrorIs(c, err, errors.ErrUnsupported)
			require.ErrorContains(c, err, path.Base(foreign))
		}
		require.NoError(c, leader.Err())
		data, _, err := other.Get(c.Context(), electionPath)
		require.NoError(c, err)
		require.Empty(c, data)
		require.NoError(c, leader.Transfer(c.Context(), foreign), "to the other library's itself")
		require.ErrorIs(c, c.any().Transfer(c.Context(), c.node("b")), errors.ErrUnsupported, "it cannot be asked")
		require.Empty(c, c.elected)
		require.NoError(c, other.Delete(c.Context(), foreign, -1))
		c.follow(c.next("c"), "b")
	})
}

func TestOneWhoIsNamedAndDiesBeforeItLeadsIsNotWaitedFor(t *testing.T) {
	inDialects(t, func(c *crowd) {
		leader := c.led("a", "b", "c")
		node := c.node("c")
		cut := c.Server.Partition(zkembed.Cut{Sessions: []int64{c.clients["c"].Info().SessionID}})
		err := leader.Transfer(c.Context(), node)
		if c.clients["a"].Info().Dialect == coord.Curator { // where a leader has a notice
			require.ErrorIs(c, err, election.ErrNoCandidate)
		}
		require.ErrorIs(c, leader.Err(), coord.ErrReleased)
		c.next("b")
		cut.Heal()
	})
}

func TestATransferWhoseRepliesAreLostSucceeds(t *testing.T) {
	inDialects(t, func(c *crowd) {
		leader := c.led("a", "b", "c")
		node := c.node("c")
		lost := c.Server.Inject(zkembed.Match{
			Session: leader.Session(), Ops: []zkembed.Op{zkembed.OpMulti, zkembed.OpDelete}, Times: 2,
		}, zkembed.LoseReply())
		require.NoError(c, leader.Transfer(c.Context(), node))
		require.Equal(c, 2, lost.Fired())
		c.follow(c.next("c"), "b")
	})
}

func TestALeaderIsAskedToHandTheLeadOver(t *testing.T) {
	inDialects(t, func(c *crowd) {
		leader := c.led("a", "b", "c")
		revoked := leader.Revoked()
		done := coordtest.Go(func() error { return c.any().Transfer(c.Context(), c.node("c")) })
		<-revoked
		time.Sleep(time.Minute)
		require.Empty(c, done, "the transfer is done while the leader leads")
		require.NoError(c, leader.Resign(c.Context()))
		next := c.next("c")
		require.NoError(c, <-done)
		require.NoError(c, c.any().Transfer(c.Context(), next.Node()), "it leads already")
		select {
		case <-next.Revoked():
			require.Fail(c, "one who leads already was asked to step down")
		default:
		}
		c.follow(next, "b")
	})
}

func TestALeaderThatDoesNotObeyLeadsOnAndTheNamedOneFollowsIt(t *testing.T) {
	inDialects(t, func(c *crowd) {
		leader := c.led("a", "b", "c")
		require.ErrorIs(c, c.any().Transfer(c.Within(time.Minute), c.node("c")), context.DeadlineExceeded)
		require.NoError(c, leader.Err())
		c.follow(leader, "c", "b")
	})
}

func TestALostTermIsNotHandedOver(t *testing.T) {
	inDialects(t, func(c *crowd) {
		leader := c.led("a", "b", "c")
		node := c.node("c")
		require.NoError(c, c.Server.ExpireSession(leader.Session()))
		<-leader.Done()
		require.ErrorIs(c, leader.Transfer(c.Context(), node), coord.ErrLost)
		c.follow(c.next("b"), "c")
	})
}

func TestTheLeadIsHandedOverOnAnyServer(t *testing.T) {
	each(t, func(s scene) {
		var es []*election.Election
		for priority := range 4 {
			es = append(es, s.candidate(election.Priority(priority)))
		}
		leader := elected(s, es[0], "0")
		waits := []<-chan outcome{nil}
		for i, name := range []string{"1", "2", "3"} {
			waits = append(waits, s.stand(s.Context(), es[i+1], name, i+2))
		}
		line := coordtest.Call(s, es[3].Contenders)
		require.Equal(s, "2", line[2].Owner)
		require.NoError(s, leader.Transfer(coordtest.Limited(s), line[2].Node))
		second := coordtest.Had(s, waits[2])
		require.Equal(s, line[2].Node, second.Node())
		require.NoError(s, second.Resign(coordtest.Limited(s)))
		third := coordtest.Had(s, waits[3])
		require.NoError(s, third.Resign(coordtest.Limited(s)))
		require.NoError(s, coordtest.Had(s, waits[1]).Resign(coordtest.Limited(s)))
	})
}

// Kazoo's leaders post no notice: nothing else is asked for after the look.
func TestATermWhoseWindowEndsWhileTheCandidateLooksIsNotReturned(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open(coord.WithDialect(coord.Kazoo))
		e := at(b, c, electionPath)
		slow := b.Server.Inject(zkembed.Match{
			PathPrefix: electionPath, Ops: []zkembed.Op{zkembed.OpGetData},
			Func: func(r zkembed.Request) bool {
				return r.Paths[0] == electionPath
			}, Times: 1,
		}, zkembed.Hang())
		healed := coordtest.Go(func() bool {
			<-slow.Struck()
			cut := b.Server.Partition(zkembed.Cut{Sessions: []int64{c.Info().SessionID}})
			time.Sleep(2 * coordtest.T)
			cut.Heal()
			return true
		})
		term, err := e.Campaign(b.Context(), nil)
		require.NoError(b, err)
		require.NoError(b, term.Err())
		require.True(b, <-healed)
		b.Close(c)
	})
}

// The next leader has no notice yet, by which it is asked.
func TestALeaderThatHasJustBegunIsAskedToHandTheLeadOver(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := newCrowd(b)
		first := c.led("a", "b", "c")
		node := c.node("c")
		posts := notices
		posts.Session = c.clients["b"].Info().SessionID
		late := c.Server.Inject(posts, zkembed.Delay(T/10))
		require.NoError(c, first.Resign(c.Context()))
		<-late.Struck()
		done := coordtest.Go(func() error { return c.any().Transfer(c.Context(), node) })
		leader := c.next("b")
		<-leader.Revoked()
		require.NoError(c, leader.Resign(c.Context()))
		c.follow(c.next("c"))
		require.NoError(c, <-done)
	})
}

// The data may be anything else, such as the environment of a process.
func TestDataThatWouldBeReadAsAPriorityAreRefused(t *testing.T) {
	s := zktest.New(t, zktest.Embedded)
	e, err := election.New(coordtest.Open(t, s.ConnectString()), s.Path("election"))
	require.NoError(t, err)
	for _, data := range []string{"me\nCOORD-PRIORITY=99", "me\nCOORD_HELD=x", "__REVOKE__"} {
		require.ErrorIs(t, coordtest.Err(e.TryCampaign(coordtest.Limited(t), []byte(data))), coord.ErrInvalid, data)
	}
	term, err := e.TryCampaign(coordtest.Limited(t), []byte("HOME=/\nPRIORITY=99\nCOORD=x"))
	require.NoError(t, err)
	require.ErrorIs(t, term.Proclaim(coordtest.Limited(t), []byte("me\nCOORD-PRIORITY=99")), coord.ErrInvalid)
	leader, err := e.Leader(coordtest.Limited(t))
	require.NoError(t, err)
	require.Equal(t, "HOME=/\nPRIORITY=99\nCOORD=x", string(leader.Data))
	require.NoError(t, term.Resign(coordtest.Limited(t)))
}
