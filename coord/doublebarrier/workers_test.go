package doublebarrier_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// fate is what becomes of a worker in a round.
type fate int

const (
	lives       fate = iota
	diesWaiting      // for the round to begin, perhaps after it has
	diesInside
	diesLeaving
	impatient // gives up entering after a while
	abandons  // says that it has not finished
	hasty     // gives up leaving after a while
	fates
)

var fateNames = [fates]string{
	"lives", "dies waiting", "dies inside", "dies leaving", "is impatient", "abandons", "is hasty",
}

// history is what workers saw of a barrier, in one order.
type history struct {
	mu     sync.Mutex
	now    int
	rounds map[int64]*seen
	struck [fates]int // how often each fate befell a worker
	last   int64
}

// seen is what was seen of one round. The times count what was recorded.
type seen struct {
	entered  map[int]int // by index: when Enter had returned
	finished map[int]int // by index: when Leave was about to be called
	left     map[int]int // by index: when Leave had returned a verdict
	verdicts map[int]error
	members  int // how many the round has
	data     [][]byte
	results  [][]byte
}

// note records something about a member's round and passes the round's number.
func (h *history) note(m *doublebarrier.Member, f func(s *seen, now int)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.rounds[m.Round()]
	if s == nil {
		s = &seen{map[int]int{}, map[int]int{}, map[int]int{}, map[int]error{}, m.Count(), m.Data(), nil}
		h.rounds[m.Round()] = s
	}
	h.now++
	h.last = max(h.last, m.Round())
	f(s, h.now)
}

func (h *history) strike(f fate) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.struck[f]++
}

// check judges the history by what the package promises.
func (h *history) check(t testing.TB, n, least int) {
	t.Helper()
	over := 0     // when the rounds before had ended, as far as seen
	vanished := 0 // members that were missing and had never entered
	for number := int64(1); number <= h.last; number++ {
		s := h.rounds[number]
		if s == nil {
			continue // nobody lived to see it
		}
		if s.members < least || s.members > n {
			t.Errorf("round %d has %d members, not %d to %d", number, s.members, least, n)
		}
		for index, at := range s.entered {
			if index >= s.members || at <= over {
				t.Errorf("round %d of %d began for member %d before an earlier round was over", number, s.members, index)
			}
		}
		missing, known := s.missing(t, number)
		if !known {
			continue
		}
		last := 0
		for index := range s.members {
			if _, entered := s.entered[index]; !entered {
				vanished++
			}
			if at, finished := s.finished[index]; !slices.Contains(missing, index) {
				if !finished {
					t.Errorf("round %d: members have left and %d has not finished", number, index)
				}
				last = max(last, at)
				if s.results != nil && string(s.results[index]) != brings(number, index) {
					t.Errorf("round %d: member %d finished, and its result is %q", number, index, s.results[index])
				}
			}
		}
		for index, at := range s.left {
			if at < last {
				t.Errorf("round %d: member %d left early", number, index)
			}
		}
		over = max(over, last)
	}
	// At the end every member is told to give up.
	require.LessOrEqual(t, vanished, h.struck[diesWaiting]+h.struck[impatient]+n,
		"members are missing that nobody has killed")
}

// missing returns the one verdict of a round.
func (s *seen) missing(t testing.TB, number int64) (missing []int, known bool) {
	t.Helper()
	var verdict doublebarrier.IncompleteError
	for index, err := range s.verdicts {
		told := doublebarrier.IncompleteError{Round: number, Members: s.members}
		if incomplete := new(doublebarrier.IncompleteError); err != nil {
			require.ErrorAs(t, err, &incomplete)
			told = *incomplete
		}
		require.NotContains(t, told.Missing, index, "round %d: member %d is missing and knows it", number, index)
		for member, why := range told.Reasons {
			require.Contains(t, told.Missing, member, "round %d: why %d is missing, which is not", number, member)
			if strings.HasPrefix(why, "result ") {
				require.Equal(t, brings(number, member), why)
			}
		}
		if known {
			require.Equal(t, verdict, told, "round %d: two verdicts", number)
		}
		verdict, known = told, true
	}
	return verdict.Missing, known
}

// workers is a pool of processes that use the barrier /b until it has seen
// enough rounds. Each has a client of its own. Who dies is replaced.
type workers struct {
	bubble
	*history
	joins    func(*coord.Client)      // called for each client; or nil
	apart    func(*coord.Client) bool // its members list the others as in a large round; nil: none
	n        int
	rounds   int64
	least    int        // that a round begins with after the last call, or 0
	brings   bool       // data and results
	odds     [fates]int // in a thousand, of every fate but living
	pace     time.Duration
	ctx      context.Context // ends when there were enough rounds
	patience context.Context // ends when they take too long
	enough   context.CancelFunc
	all      sync.WaitGroup
}

func (w *workers) fate(r *rand.Rand) fate {
	p := r.IntN(1000)
	for f := diesWaiting; f < fates; f++ {
		p -= w.odds[f]
		if p < 0 {
			return f
		}
	}
	return lives
}

// run lets size workers work and returns when all have stopped.
func (w *workers) run(size int, seed uint64) {
	w.history = &history{rounds: map[int64]*seen{}}
	var gaveUp context.CancelFunc
	w.patience, gaveUp = context.WithTimeout(w.Context(), 6*time.Hour)
	defer gaveUp()
	w.ctx, w.enough = context.WithCancel(w.patience)
	for i := range size {
		w.all.Go(func() { w.live(rand.New(rand.NewPCG(seed, uint64(i)))) })
	}
	w.all.Wait()
	require.NoError(w, w.patience.Err(), "a member hangs; round %d was the last", w.last)
}

// live is one place in the pool: a process, and after its death the next.
func (w *workers) live(r *rand.Rand) {
	for w.ctx.Err() == nil {
		c := w.Open()
		if w.joins != nil {
			w.joins(c)
		}
		w.work(r, c)
		require.NoError(w, c.Close(context.Background()))
		time.Sleep(upTo(r, w.pace))
	}
}

// work uses the barrier round after round, until the process dies or there were
// enough rounds.
func (w *workers) work(r *rand.Rand, c *coord.Client) {
	opts := []doublebarrier.Option{doublebarrier.WaitForNextRound()}
	if w.least > 0 {
		opts = append(opts, doublebarrier.AtLeast(w.least, w.pace))
	}
	b := barrier(w, c, "/b", w.n, opts...)
	if w.apart != nil && w.apart(c) {
		b.ListApart()
	}
	for alive := true; alive && w.ctx.Err() == nil; {
		alive = w.turn(r, c, b)
	}
}

// turn is a worker's way through one round. It reports whether the worker
// lives.
func (w *workers) turn(r *rand.Rand, c *coord.Client, b *doublebarrier.Barrier) (alive bool) {
	f := w.fate(r)
	w.strike(f)
	if f == diesWaiting {
		w.killSoon(r, c)
	}
	ctx, cancel := w.ctx, context.CancelFunc(func() {})
	if f == impatient {
		ctx, cancel = context.WithTimeout(ctx, upTo(r, w.pace*4)+1)
	}
	var data []byte
	if w.brings {
		data = []byte(c.Info().Identity)
	}
	m, err := b.EnterWith(ctx, data)
	cancel()
	if err != nil {
		return w.mayFail(f, err)
	}
	w.note(m, func(s *seen, now int) {
		if _, twice := s.entered[m.Index()]; twice {
			w.Errorf("round %d has two members %d", m.Round(), m.Index())
		}
		s.entered[m.Index()] = now
		if w.brings && (len(s.data) != m.Count() || string(s.data[m.Index()]) != c.Info().Identity) {
			w.Errorf("round %d: the data of member %d are in %q", m.Round(), m.Index(), s.data)
		}
		if s.members != m.Count() || !slices.EqualFunc(s.data, m.Data(), slices.Equal) {
			w.Errorf("round %d: members see different rounds", m.Round())
		}
	})
	if m.Round() >= w.rounds {
		w.enough()
	}
	if f == diesInside {
		w.killSoon(r, c)
	}
	time.Sleep(upTo(r, w.pace))
	if f == abandons {
		require.NoError(w, m.GiveUp(context.Background(), errors.New(brings(m.Round(), m.Index()))))
		return true
	}
	return w.leave(r, c, m, f)
}

func (w *workers) leave(r *rand.Rand, c *coord.Client, m *doublebarrier.Member, f fate) (alive bool) {
	if f == diesLeaving {
		w.killSoon(r, c)
	}
	ctx, cancel := w.patience, context.CancelFunc(func() {})
	if f == hasty {
		ctx, cancel = context.WithTimeout(ctx, upTo(r, w.pace))
	}
	defer cancel()
	w.note(m, func(s *seen, now int) { s.finished[m.Index()] = now })
	var err error
	var results [][]byte
	if w.brings {
		results, err = m.Gather(ctx, []byte(brings(m.Round(), m.Index())))
	} else {
		err = m.Leave(ctx)
	}
	if err != nil && !errors.Is(err, doublebarrier.ErrIncomplete) {
		return w.mayFail(f, err)
	}
	w.note(m, func(s *seen, now int) {
		s.left[m.Index()], s.verdicts[m.Index()] = now, err
		if s.results != nil && !slices.EqualFunc(s.results, results, slices.Equal) {
			w.Errorf("round %d: the results are %q, and %q", m.Round(), s.results, results)
		}
		s.results = results
	})
	return f != diesLeaving && f != diesInside && f != diesWaiting
}

// brings is the result of a worker.
func brings(round int64, index int) string { return fmt.Sprint("result ", index, " of round ", round) }

// mayFail judges an error by a worker's fate.
func (w *workers) mayFail(f fate, err error) (alive bool) {
	if w.patience.Err() != nil {
		return false
	}
	switch f {
	case impatient, hasty:
		if errors.Is(err, context.DeadlineExceeded) {
			return true
		}
	case diesWaiting, diesInside, diesLeaving:
		return false
	}
	if w.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return false
	}
	w.Errorf("a worker that %s: %v", fateNames[f], err)
	return false
}

// killSoon kills a process after a while: its session is over immediately, or
// when the server has not heard of the session for long enough.
func (w *workers) killSoon(r *rand.Rand, c *coord.Client) {
	after, atOnce := upTo(r, w.pace*2), r.IntN(8) > 0
	session := c.Info().SessionID
	w.all.Go(func() {
		time.Sleep(after)
		if atOnce {
			_ = w.Server.ExpireSession(session) // unless it is gone already
		} else {
			cut := w.Server.Partition(zkembed.Cut{Sessions: []int64{session}})
			time.Sleep(T + T/2)
			cut.Heal()
		}
		_ = c.Close(context.Background())
	})
}

func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

// calm is a session timeout long enough for no ping and no probe to come in
// the way of the counting.
const calm = time.Hour

// inCalm is a bubble with n clients whose sessions last that long.
func inCalm(t *testing.T, n int, f func(t *testing.T, b bubble, clients []*coord.Client)) {
	inBubble(t, func(t *testing.T, b bubble) {
		var clients []*coord.Client
		for range n {
			clients = append(clients, b.Open(coord.WithSessionTimeout(calm)))
		}
		f(t, b, clients)
	}, zkembed.WithSessionTimeouts(0, calm))
}

// spent is what a session asked for and was told in a phase.
type spent struct{ requests, wakeUps int }

// phase runs f for every client together and returns what each session spent.
func (b bubble) phase(clients []*coord.Client, f func(i int)) []spent {
	synctest.Wait()
	var before []zkembed.Counts
	for _, c := range clients {
		before = append(before, b.Server.SessionCounts(c.Info().SessionID))
	}
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
	time.Sleep(time.Second) // for late requests, such as the watch on our node
	var all []spent
	for i, c := range clients {
		counts := b.Server.SessionCounts(c.Info().SessionID).Since(before[i])
		all = append(all, spent{counts.Total(), counts[zkembed.OpNotify]})
	}
	return all
}

func total(all []spent) (requests int) {
	for _, s := range all {
		requests += s.requests
	}
	return requests
}

// ordinary returns the most that any member but the special one spent: that is
// the opener or the monitor. If it is not given, it is the member with the most
// requests.
func ordinary(all []spent, special ...int) (most spent) {
	if len(special) == 0 {
		busiest := slices.MaxFunc(all, func(x, y spent) int { return x.requests - y.requests })
		special = []int{slices.Index(all, busiest)}
	}
	for i, s := range all {
		if i != special[0] {
			most = spent{max(most.requests, s.requests), max(most.wakeUps, s.wakeUps)}
		}
	}
	return most
}

func TestAMembersRequestsAndWakeUpsDoNotGrowWithTheNumberOfMembers(t *testing.T) {
	for _, n := range []int{3, 32, 200} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			inCalm(t, n, func(t *testing.T, b bubble, clients []*coord.Client) {
				members := make([]*doublebarrier.Member, n)
				for r := range 3 {
					enter := b.phase(clients, func(i int) {
						m, err := barrier(t, clients[i], "/b", n).Enter(b.Context())
						require.NoError(t, err)
						members[i] = m
					})
					leave := b.phase(clients, func(i int) { require.NoError(t, members[i].Leave(b.Context())) })
					monitor := slices.IndexFunc(members, func(m *doublebarrier.Member) bool { return m.Index() == 0 })
					t.Logf("round %d: enter %+v total %d, leave %+v total %d", r+1, ordinary(enter), total(enter),
						ordinary(leave, monitor), total(leave))
					if r == 0 {
						// All of them find no barrier and make it.
						require.LessOrEqual(t, ordinary(enter).requests, 12)
						continue
					}
					// The opener opens besides. In a small round all list, in a
					// large one only the opener.
					each, opener := 4, 2
					if n <= doublebarrier.Small {
						each, opener = 5, 1
					}
					require.LessOrEqual(t, ordinary(enter).requests, each)
					require.LessOrEqual(t, ordinary(enter).wakeUps, 1)
					require.LessOrEqual(t, total(enter), each*n+opener)
					// The monitor reads every other, once or twice.
					require.LessOrEqual(t, ordinary(leave, monitor).requests, 5)
					require.LessOrEqual(t, ordinary(leave, monitor).wakeUps, 4)
					require.LessOrEqual(t, total(leave), 5*n+2*n+1)
				}
			})
		})
	}
}

// While members wait to leave, the monitor dies, and then the next one, and so
// on: each death costs the others little, and wakes only the next.
func TestADeathInLeaveWakesTheNextOnly(t *testing.T) {
	const n, deaths = 40, 10
	inCalm(t, n, func(t *testing.T, b bubble, clients []*coord.Client) {
		members := entered(t, b.enter(b.views(clients, n)...)...)
		var left []<-chan error
		for _, m := range members[:n-1] {
			left = append(left, leaving(b.Context(), m))
		}
		time.Sleep(lasts) // each watches the one before it
		for i := range deaths {
			all := b.phase(clients[i+1:], func(at int) {
				if at == 0 {
					require.NoError(t, b.Server.ExpireSession(clients[i].Info().SessionID))
				}
			})
			require.Equal(t, 1, all[0].wakeUps)
			require.LessOrEqual(t, all[0].requests, n)
			for _, s := range all[1:] {
				require.Equal(t, spent{}, s)
			}
		}
		verdict := members[n-1].Leave(b.Context())
		requireMissing(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, verdict)
		for i, err := range told(t, left...) {
			if i < deaths {
				require.ErrorIs(t, err, coord.ErrLost)
			} else {
				require.Equal(t, verdict, err)
			}
		}
	})
}

// The first member of two sees the second when it looks. Only the second
// completes the round.
func TestOneMemberAloneTriesToBeginTheFirstRound(t *testing.T) {
	inCalm(t, 2, func(t *testing.T, b bubble, clients []*coord.Client) {
		slow := b.Server.Inject(zkembed.Match{
			Session: clients[0].Info().SessionID, Ops: []zkembed.Op{zkembed.OpGetChildren2}, Skip: 1,
			Times: 1, // behind its create
		}, zkembed.Delay(3*lasts))
		tries := b.Server.Inject(zkembed.Match{Func: func(r zkembed.Request) bool {
			return slices.Contains(r.Parts, zkembed.OpSetData) && slices.Contains(r.Paths, "/b/ready")
		}}, zkembed.Delay(3*lasts))
		entering := b.enter(b.views(clients[:1], 2)...)
		require.Equal(t, 1, slow.Fired())
		members := entered(t, append(entering, b.enter(b.views(clients[1:], 2)...)...)...)
		require.Equal(t, 1, tries.Fired())
		leave(t, members...)
	})
}

// A member that looks at the others only when all of them have left already
// does not take them for dead, one after the other.
func TestALeaverThatIsSlowToLookAroundAsksNoMoreThanTheOthers(t *testing.T) {
	const n = 20
	inCalm(t, n, func(t *testing.T, b bubble, clients []*coord.Client) {
		members := entered(t, b.enter(b.views(clients, n)...)...)
		slow := b.Server.Inject(zkembed.Match{
			Session: clients[n-1].Info().SessionID, PathPrefix: members[n-2].Node(), Times: 1,
		}, zkembed.Delay(time.Minute))
		all := b.phase(clients, func(i int) {
			if i < n-1 {
				<-slow.Struck()
			}
			require.NoError(t, members[i].Leave(b.Context()))
		})
		require.LessOrEqual(t, all[n-1].requests, 5)
	})
}

// BenchmarkRound is one round of n members with a session each: all enter
// together, and leave together. The server is in the same process.
func BenchmarkRound(b *testing.B) {
	for _, n := range []int{8, 32} {
		b.Run(fmt.Sprintf("members=%d", n), func(b *testing.B) {
			w := zktest.NewEmbedded(b)
			w.SetTimeout(time.Minute) // no probe comes in between
			barriers := make([]*doublebarrier.Barrier, n)
			for i := range barriers {
				c := coordtest.Open(b, w.ConnectString(), coord.WithSessionTimeout(time.Minute))
				barriers[i] = barrier(b, c, w.Path("barrier"), n)
			}
			b.ReportAllocs()
			for b.Loop() {
				leave(b, round(b, barriers...)...)
			}
		})
	}
}
