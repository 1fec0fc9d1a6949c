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
		var calls sync.Map // acquisitions that may be under way, by lock: of every key that the member does not have
		begin := func(lock string) { calls.Store(lock, w.Rec.Call(w.Name, lock, history.Exclusive)) }
		for _, lock := range KeysOf(w.Key, n) {
			begin(lock)
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
			if Pause(ended, stay, w.Calm); leaves {
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
			op, _ := calls.LoadAndDelete(lock)
			g := history.Granted(op.(*history.Op), h)
			w.Granted(w, h)
			defer func() {
				if g.Trusted() {
					given(g)
				}
				begin(lock)
			}()
			for {
				w.touch(lock, h)
				w.look(h)
				if isClosed(shards.Draining(ctx)) {
					w.Count("keys drained")
					return nil
				}
				if !Pause(ctx, step, shards.Draining(ctx)) && ctx.Err() != nil {
					return ctx.Err()
				}
			}
		})
		end()
		ending.Wait()
		for _, op := range calls.Range {
			op.(*history.Op).End(history.Failed, err)
		}
		running.end("Run", err, coord.ErrUnconfirmed) // nil, too, if somebody has asked for the member
		return isClosed(first)
	}
}
