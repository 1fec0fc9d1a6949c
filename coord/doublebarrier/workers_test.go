package doublebarrier_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
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

var fateNames = [fates]string{"lives", "dies waiting", "dies inside", "dies leaving", "is impatient", "abandons", "is hasty"}

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
	unsure   []int // whose Leave ended without a verdict
}

func newHistory() *history { return &history{rounds: map[int64]*seen{}} }

// note records something about a member's round and tells the round's number.
func (h *history) note(m *doublebarrier.Member, f func(s *seen, now int)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.rounds[m.Round()]
	if s == nil {
		s = &seen{map[int]int{}, map[int]int{}, map[int]int{}, map[int]error{}, nil}
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
func (h *history) check(t testing.TB, n int) {
	t.Helper()
	over := 0     // when the rounds before had ended, as far as seen
	vanished := 0 // members that were missing and had never entered
	for number := int64(1); number <= h.last; number++ {
		s := h.rounds[number]
		if s == nil {
			continue // nobody lived to see it
		}
		for index, at := range s.entered {
			if index >= n || at <= over {
				t.Errorf("round %d of %d began for member %d before an earlier round was over", number, n, index)
			}
		}
		missing, known := s.missing(t, number)
		if !known {
			continue
		}
		last := 0
		for index := range n {
			if _, entered := s.entered[index]; !entered {
				vanished++
			}
			if at, finished := s.finished[index]; !slices.Contains(missing, index) {
				if !finished {
					t.Errorf("round %d: members have left and %d has not finished", number, index)
				}
				last = max(last, at)
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
	require.LessOrEqual(t, vanished, h.struck[diesWaiting]+h.struck[impatient]+n, "members are missing that nobody has killed")
}

// missing returns the one verdict of a round.
func (s *seen) missing(t testing.TB, number int64) (missing []int, known bool) {
	t.Helper()
	for index, err := range s.verdicts {
		var incomplete *doublebarrier.IncompleteError
		var told []int
		if err != nil {
			require.ErrorAs(t, err, &incomplete)
			require.Equal(t, number, incomplete.Round)
			told = incomplete.Missing
		}
		require.NotContains(t, told, index, "round %d: member %d is missing and knows it", number, index)
		if known {
			require.Equal(t, missing, told, "round %d: two verdicts", number)
		}
		missing, known = told, true
	}
	return missing, known
}

// workers is a pool of processes that use one barrier until it has seen enough
// rounds. Each has a client of its own. Who dies is replaced.
type workers struct {
	*testing.T
	*history
	path     string
	open     func() *coord.Client
	apart    func(*coord.Client) bool // its members list the others as in a large round
	expire   func(session int64)
	hide     func(session int64) // longer than its time-out
	n        int
	rounds   int64
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
		if p -= w.odds[f]; p < 0 {
			return f
		}
	}
	return lives
}

// in makes the workers use a server in a bubble.
func (w *workers) in(b bubble) *workers {
	w.T, w.path = b.T, "/b"
	w.open = func() *coord.Client { return b.Open() }
	w.apart = func(*coord.Client) bool { return false }
	w.expire = func(session int64) { _ = b.Server.ExpireSession(session) } // unless it is gone already
	w.hide = func(session int64) {
		cut := b.Server.Partition(zkembed.Cut{Sessions: []int64{session}})
		defer cut.Heal()
		time.Sleep(T + T/2)
	}
	return w
}

// run lets size workers work and returns when all have stopped.
func (w *workers) run(size int, seed uint64) {
	w.history = newHistory()
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
		c := w.open()
		w.work(r, c)
		require.NoError(w, c.Close(context.Background()))
		time.Sleep(upTo(r, w.pace))
	}
}

// work uses the barrier round after round, until the process dies or there were
// enough rounds.
func (w *workers) work(r *rand.Rand, c *coord.Client) {
	b := barrier(w, c, w.path, w.n, doublebarrier.WaitForNextRound())
	if w.apart(c) {
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
	m, err := b.Enter(ctx)
	cancel()
	if err != nil {
		return w.mayFail(f, err)
	}
	w.note(m, func(s *seen, now int) {
		if _, twice := s.entered[m.Index()]; twice {
			w.Errorf("round %d has two members %d", m.Round(), m.Index())
		}
		s.entered[m.Index()] = now
	})
	if m.Round() >= w.rounds {
		w.enough()
	}
	if f == diesInside {
		w.killSoon(r, c)
	}
	time.Sleep(upTo(r, w.pace))
	if f == abandons {
		require.NoError(w, m.Abandon(context.Background()))
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
	err := m.Leave(ctx)
	if err != nil && !errors.Is(err, doublebarrier.ErrIncomplete) {
		return w.mayFail(f, err)
	}
	w.note(m, func(s *seen, now int) { s.left[m.Index()], s.verdicts[m.Index()] = now, err })
	return f != diesLeaving && f != diesInside && f != diesWaiting
}

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

// killSoon kills a process after a while: its session is over at once, or when
// the server has not heard of it for long enough.
func (w *workers) killSoon(r *rand.Rand, c *coord.Client) {
	after, atOnce := upTo(r, w.pace*2), r.IntN(8) > 0
	session := c.SessionID()
	w.all.Go(func() {
		time.Sleep(after)
		if atOnce {
			w.expire(session)
		} else {
			w.hide(session)
		}
		_ = c.Close(context.Background())
	})
}

func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }
