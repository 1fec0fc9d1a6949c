package workload

import (
	"context"
	"path"
	"strconv"
	"strings"
	"sync"

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

func keyNames(n int) []string {
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

// ShareKeys is a member of a set of shards of n keys for a while. At its end it
// leaves, or stops at once.
func ShareKeys(n int) Use {
	return func(w *Worker, c *coord.Client) bool {
		opts := []shards.Option{shards.Keys(keyNames(n)...), shards.DrainTimeout(w.share(0.1, 1))}
		if Chance(w.Rand, 0.5) {
			opts = append(opts, shards.ID(w.Name), shards.MovesAtATime(1+w.Rand.IntN(n)))
		}
		s := must(shards.New(c, w.Key, opts...))
		running, leaves, stay, step := w.call(), Chance(w.Rand, 0.5), w.hold(w.Rand), upTo(w.Rand, w.Pace.Step)+w.Pace.Step/10
		calls := &standing{ops: map[string]*history.Op{}}
		for _, lock := range KeysOf(w.Key, n) {
			calls.begin(w, lock)
		}
		var began sync.Once
		first := make(chan struct{})
		var ending sync.WaitGroup
		ended, end := context.WithCancel(running.ctx)
		ending.Go(func() {
			select {
			case <-first:
			case <-ended.Done():
				return
			}
			if pause(ended, stay, w.Calm); leaves {
				leaving, cancel := context.WithTimeout(ended, 2*w.Pace.Timeout)
				defer cancel()
				_ = s.Leave(leaving)
			}
			running.stop()
		})
		err := s.Run(running.ctx, func(ctx context.Context, key string, h *coord.Hold) error {
			began.Do(func() {
				running.held()
				close(first)
			})
			lock := s.Line(key).Dir
			g := history.Granted(calls.end(lock), h)
			w.Granted(w, h)
			defer func() {
				if g.Trusted() {
					given(g)
				}
				calls.begin(w, lock)
			}()
			for {
				w.touch(lock, h)
				w.look(h)
				select {
				case <-shards.Draining(ctx):
					w.Count("keys drained")
					return nil
				default:
				}
				if !pause(ctx, step, shards.Draining(ctx)) && ctx.Err() != nil {
					return ctx.Err()
				}
			}
		})
		end()
		ending.Wait()
		for _, op := range calls.ops {
			op.End(history.Failed, err)
		}
		running.end("Run", err, coord.ErrUnconfirmed) // nil, too, if somebody has asked for the member
		select {
		case <-first:
			return true
		default:
			return false
		}
	}
}

// standing are the acquisitions of a member that may be under way: of every key
// that it does not have.
type standing struct {
	mu  sync.Mutex
	ops map[string]*history.Op
}

func (s *standing) begin(w *Worker, lock string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ops[lock] = w.Rec.Call(w.Name, lock, history.Exclusive)
}

// end returns the acquisition that ends.
func (s *standing) end(lock string) *history.Op {
	s.mu.Lock()
	defer s.mu.Unlock()
	op := s.ops[lock]
	delete(s.ops, lock)
	return op
}
