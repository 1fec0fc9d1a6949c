package coord_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/fence"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/coord/shards"
	"github.com/zkcoord/zkcoord/coord/slots"
	"github.com/zkcoord/zkcoord/coord/value"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// sure returns what a constructor made.
func sure[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// No call that takes a function takes nil for one: it is refused when the call
// is made, and not when the function would be called, which may be hours later.
// No server answers here.
func TestF89ANilFunctionIsRefusedAtOnceByAllThatTakeOne(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, ctx := b.Open(), b.Context()
		mutex := sure(lock.New(c, "/lock"))
		shared := sure(rwlock.New(c, "/shared"))
		ledger := sure(once.New(c, "/once"))
		record := recipe.NewRecord(c, "/record")
		decide := func(data []byte, _ coord.Stat) ([]byte, error) { return data, nil }
		spec := coord.Spec{Line: coord.Line{Dir: "/line"}, Kind: "lock"}
		calls := map[string]func() error{
			"recipe.Acquire":          func() error { return coordtest.Err(recipe.Acquire(ctx, c, &spec, nil)) },
			"recipe.TryAcquire":       func() error { return coordtest.Err(recipe.TryAcquire(ctx, c, &spec, nil)) },
			"recipe.Acquire, spec":    func() error { return coordtest.Err(recipe.Acquire(ctx, c, nil, coord.First)) },
			"recipe.TryAcquire, spec": func() error { return coordtest.Err(recipe.TryAcquire(ctx, c, nil, coord.First)) },
			"recipe.Join, spec": func() error {
				_, _, err := recipe.Join(ctx, c, nil)
				return err
			},
			"recipe.Retry":        func() error { return recipe.Retry(ctx, c, nil) },
			"coord.Client.Wait":   func() error { return c.Wait(ctx, nil) },
			"coord.WithDialer":    func() error { return coordtest.Err(coord.Open(ctx, "h", coord.WithDialer(nil))) },
			"coord.WithObserver":  func() error { return coordtest.Err(coord.Open(ctx, "h", coord.WithObserver(nil))) },
			"coord.WithAttendant": func() error { return coordtest.Err(coord.Open(ctx, "h", coord.WithAttendant("/a", nil))) },
			"cron.Clock":          func() error { return coordtest.Err(cron.New(c, "/cron", secondly{}, cron.Clock(nil))) },
			"cron.Cron.Run":       func() error { return sure(cron.New(c, "/cron", secondly{})).Run(ctx, nil) },
			"cron.OnEnd":          func() error { return coordtest.Err(cron.New(c, "/cron", secondly{}, cron.OnEnd(nil))) },
			"doublebarrier.Barrier.Do": func() error {
				return sure(doublebarrier.New(c, "/db", 2)).Do(ctx, nil)
			},
			"election.Election.Run": func() error { return sure(election.New(c, "/election")).Run(ctx, nil, nil) },
			"election.Health": func() error {
				return coordtest.Err(election.New(c, "/election", election.Health(time.Second, 1, nil)))
			},
			"fence.Check":      func() error { return invalid(fence.Check(ctx, 7, nil)) },
			"fence.NewHandler": func() error { return invalid(coordtest.Err(fence.NewHandler(fence.Memory(), nil, nil))) },
			"lock.Mutex.Do":    func() error { return mutex.Do(ctx, nil) },
			"lock.Node.Do":     func() error { return sure(lock.NewNode(c, "/node")).Do(ctx, nil) },
			"lock.NodeData":    func() error { return coordtest.Err(lock.NewNode(c, "/node", lock.NodeData(nil))) },
			"lock.Multi.Do":    func() error { return sure(lock.NewMulti(mutex)).Do(ctx, nil) },
			"once.Once.Do":     func() error { return coordtest.Err(ledger.Do(ctx, "key", nil)) },
			"once.Once.TryDo":  func() error { return coordtest.Err(ledger.TryDo(ctx, "key", nil)) },
			"queue.Queue.Run":  func() error { return sure(queue.New(c, "/queue")).Run(ctx, nil) },
			"queue.OnEnd":      func() error { return coordtest.Err(queue.New(c, "/queue", queue.OnEnd(nil))) },
			"shards.OnEvent":   func() error { return coordtest.Err(shards.New(c, "/shards", shards.OnEvent(nil))) },
			"hold.NewHealth":   func() error { return coordtest.Err(hold.NewHealth(time.Second, 1, nil)) },
			"hold.Do":          func() error { return hold.Do(ctx, mutex.Acquire, nil) },
			"hold.Do acquire": func() error {
				return hold.Do(ctx, nil, func(context.Context, *coord.Hold) error { return nil })
			},
			"recipe.Observe": func() error {
				return coordtest.Last(recipe.Observe(ctx, c, "/r", nil, func(a, b int) bool { return a == b }))
			},
			"recipe.Record.Change":       func() error { return record.Change(ctx, c.Txn, nil) },
			"recipe.Record.Change write": func() error { return record.Change(ctx, nil, decide) },
			"recipe.Record.Set":          func() error { return record.Set(ctx, nil, nil) },
			"rwlock.Lock.DoRead":         func() error { return shared.DoRead(ctx, nil) },
			"rwlock.Lock.DoWrite":        func() error { return shared.DoWrite(ctx, nil) },
			"rwlock.Side.Do":             func() error { return shared.ReadSide().Do(ctx, nil) },
			"semaphore.Semaphore.Do":     func() error { return sure(semaphore.New(c, "/semaphore", 1)).Do(ctx, nil) },
			"shards.Shards.Run":          func() error { return sure(shards.New(c, "/shards")).Run(ctx, nil) },
			"slots.Slots.Do":             func() error { return sure(slots.New(c, "/slots", 1)).Do(ctx, nil) },
			"value.Value.Change":         func() error { return sure(value.New(c, "/value")).Change(ctx, nil) },
		}
		for _, name := range thatTakeFunctions(b) {
			mayBeNil := name == "recipe.Dup" || name == "recipe.InVain"
			if calls[name] == nil && !mayBeNil {
				b.Errorf("%s takes a function, and no test says what it does with nil", name)
			}
		}
		cut := b.Server.Partition(zkembed.Cut{})
		begun := time.Now()
		for _, name := range slices.Sorted(maps.Keys(calls)) {
			require.ErrorIs(b, calls[name](), coord.ErrInvalid, name)
			require.Zero(b, time.Since(begun), name)
		}
		cut.Heal()
	})
}

// invalid stands in for package fence, which knows no package but the standard
// library's, for its errors.
func invalid(err error) error {
	if err != nil {
		return coord.ErrInvalid
	}
	return nil
}

// thatTakeFunctions finds the exported functions and methods of coord and the
// recipes that take a function: package.Type.Method.
func thatTakeFunctions(b bubble) (names []string) {
	b.Helper()
	isFunc := func(e ast.Expr) bool {
		switch e := e.(type) {
		case *ast.FuncType:
			return true
		case *ast.Ellipsis:
			_, is := e.Elt.(*ast.FuncType)
			return is
		case *ast.Ident:
			return e.Name == "Func" || e.Name == "Rule"
		}
		return false
	}
	require.NoError(b, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "internal":
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, is := decl.(*ast.FuncDecl)
			if !is || !f.Name.IsExported() ||
				!slices.ContainsFunc(f.Type.Params.List, func(p *ast.Field) bool { return isFunc(p.Type) }) {
				continue
			}
			name := file.Name.Name + "."
			if f.Recv != nil {
				on := f.Recv.List[0].Type
				if star, is := on.(*ast.StarExpr); is {
					on = star.X
				}
				of, is := on.(*ast.Ident)
				if !is || !of.IsExported() {
					continue
				}
				name += of.Name + "."
			}
			names = append(names, name+f.Name.Name)
		}
		return nil
	}))
	require.Greater(b, len(names), 20)
	return names
}
