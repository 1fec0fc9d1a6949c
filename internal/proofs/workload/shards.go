package workload

import (
	"context"
	"errors"
	"math/rand/v2"
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/shards"
	"github.com/zkcoord/zkcoord/internal/proofs/history"
)

// aKey begins the name of every key, and belowKeys the paths of the keys' locks
// below the recipe's. Once has a directory of that name, too, with others.
const (
	aKey      = "k"
	belowKeys = "/keys/" + aKey
)

// MostKeys is how many keys a list may have that a test sets.
const MostKeys = 6

// KeyNames are n keys.
func KeyNames(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = aKey + strconv.Itoa(i)
	}
	return all
}

// KeysOf are the paths of the locks of n keys that are shared at path. Each is
// judged as a mutex.
func KeysOf(path string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = path + belowKeys + strconv.Itoa(i)
	}
	return all
}

// KeyOf is the key under which the history tells of a node below the path of a
// recipe.
func KeyOf(recipe, node string) string {
	if strings.HasPrefix(node, recipe+belowKeys) {
		return path.Dir(node)
	}
	return recipe
}

// RecipeAt is the path of the recipe to which a key of the history belongs.
func RecipeAt(key string) string {
	recipe, _, _ := strings.Cut(key, belowKeys)
	return recipe
}

// shared is what the members of a set of shards do, and share.
type shared struct {
	*Worker
	s         *shards.Shards
	calls     sync.Map // acquisitions that may be under way, by lock: of every key that the member does not have
	mu        sync.Mutex
	moods     *rand.Rand
	had       map[string]coord.Held // by lock, for which a function was called last
	begun     func()                // is called with the first key
	misbehave float64               // share of the calls of a function that fail, panic, exit or hang
}

// ShareKeys is a member of a set of shards of n keys for a while. At its end it
// leaves, or stops at once.
func ShareKeys(n int) Use {
	return func(w *Worker, c *coord.Client) bool {
		opts := []shards.Option{shards.Keys(KeyNames(n)...), shards.DrainTimeout(w.share(0.1, 1))}
		if Chance(w.Rand, 0.5) {
			opts = append(opts, shards.ID(w.Name), shards.MovesAtATime(1+w.Rand.IntN(n)))
		}
		running, leaves, stay := w.call(), Chance(w.Rand, 0.5), w.hold(w.Rand)
		first := make(chan struct{})
		m := w.sharing(must(shards.New(c, w.Key, opts...)), n, sync.OnceFunc(func() {
			running.held()
			close(first)
		}))
		var ending sync.WaitGroup
		ended, end := context.WithCancel(running.ctx)
		ending.Go(func() {
			select {
			case <-first:
			case <-ended.Done():
				return
			}
			Pause(ended, stay, w.Calm)
			if leaves {
				leaving, cancel := context.WithTimeout(ended, 2*w.Pace.Timeout)
				defer cancel()
				_ = m.s.Leave(leaving)
			}
			running.stop()
		})
		err := m.s.Run(running.ctx, m.work)
		end()
		ending.Wait()
		m.over(err)
		running.end("Run", err, coord.ErrUnconfirmed, shards.ErrDrainTimeout, shards.ErrReplaced,
			coord.ErrDisagree) // nil, too, if somebody has asked for the member
		return isClosed(first)
	}
}

// Reside is a member of a set of shards, with an ID of its own, that goes on
// whatever happens. It comes with n keys, or with no list if n is 0. Its
// functions fail, panic, exit and hang now and then, until the faults are over.
func Reside(n int, opts ...shards.Option) Use {
	return func(w *Worker, c *coord.Client) bool {
		opts := append([]shards.Option{
			shards.ID(w.Name), shards.DrainTimeout(w.share(0.1, 1)),
			shards.OnEvent(func(e shards.Event) { w.Count("shards: " + e.Kind) }),
		}, opts...)
		if n > 0 {
			opts = append(opts, shards.Keys(KeyNames(n)...))
		}
		m := w.sharing(must(shards.New(c, w.Key, opts...)), n, func() {})
		m.misbehave = 0.05
		running := &call{w: w}
		running.ctx, running.stop = context.WithCancel(w.ctx)
		err := m.s.Run(running.ctx, m.work)
		m.over(err)
		running.end("Run", err, shards.ErrDrainTimeout, shards.ErrReplaced, coord.ErrDisagree)
		return true
	}
}

func (w *Worker) sharing(s *shards.Shards, n int, begun func()) *shared {
	m := &shared{
		Worker: w, s: s, had: map[string]coord.Held{}, begun: begun, moods: rand.New(rand.NewPCG(w.Rand.Uint64(), 0)),
	}
	for _, lock := range KeysOf(w.Key, max(n, MostKeys)) {
		m.begin(lock)
	}
	return m
}

func (m *shared) begin(lock string) { m.calls.Store(lock, m.Rec.Call(m.Name, lock, history.Exclusive)) }

// over ends the acquisitions that may have been under way.
func (m *shared) over(err error) {
	for _, op := range m.calls.Range {
		op.(*history.Op).End(history.Failed, err)
	}
}

// mood is what a call of a function does: how often it works on, and whether it
// fails then.
func (m *shared) mood() (step time.Duration, bad string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	step = upTo(m.moods, m.Pace.Step) + m.Pace.Step/10
	if !m.isCalm() && Chance(m.moods, m.misbehave) {
		bad = []string{"fails", "panics", "exits", "hangs"}[m.moods.IntN(4)]
		m.Count("functions that " + bad[:len(bad)-1])
	}
	return step, bad
}

// again reports whether the function was called for this hold before, of which
// nobody tells the history a second time.
func (m *shared) again(lock string, h coord.Held) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.had[lock] == h
	m.had[lock] = h
	return was
}

// work is the function of a member.
func (m *shared) work(ctx context.Context, key string, h coord.Held) error {
	m.begun()
	lock := m.s.Line(key).Dir
	step, bad := m.mood()
	if !m.again(lock, h) {
		op, idle := m.calls.LoadAndDelete(lock)
		if !idle {
			m.Violated("%s: the function of %s is called while it runs", m.Name, key)
			return nil
		}
		g := history.Granted(op.(*history.Op), h)
		m.Granted(m.Worker, h)
		defer func() {
			if g.Trusted() {
				given(g)
			}
			m.begin(lock)
		}()
	}
	for {
		m.touch(lock, h)
		m.look(h)
		switch {
		case isClosed(shards.Draining(ctx)) && bad != "hangs":
			m.Count("keys drained")
			return nil
		case bad == "fails":
			return errors.New("it fails")
		case bad == "panics":
			panic("it panics")
		case bad == "exits":
			runtime.Goexit()
		case bad == "hangs" && (ctx.Err() != nil || isClosed(shards.Draining(ctx))):
			Pause(context.Background(), 3*m.Pace.Timeout, m.Calm)
			return nil
		}
		if !Pause(ctx, step, shards.Draining(ctx)) && ctx.Err() != nil && bad != "hangs" {
			return ctx.Err()
		}
	}
}
