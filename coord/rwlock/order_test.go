package rwlock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

// tally counts the holders, and notices concurrent holders that exclude each
// other.
type tally struct{ readers, writers atomic.Int64 }

func (in *tally) read(t *testing.T) (leave func()) {
	in.readers.Add(1)
	assert.Zero(t, in.writers.Load(), "a reader meets so many writers")
	return func() { in.readers.Add(-1) }
}

func (in *tally) write(t *testing.T) (leave func()) {
	assert.EqualValues(t, 1, in.writers.Add(1), "so many writers")
	assert.Zero(t, in.readers.Load(), "a writer meets so many readers")
	return func() { in.writers.Add(-1) }
}

func TestReadersShareAndWritersAndMutexesExcludeAllOthers(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		var in tally
		var wg sync.WaitGroup
		var last atomic.Int64
		exclusive := func(h *coord.Hold) {
			defer in.write(t)()
			assert.Greater(t, h.Token(), last.Swap(h.Token()))
		}
		for range 3 {
			c := coordtest.Open(t, w.ConnectString())
			l, m := rw(t, c, w.Path("lock")), mutex(t, c, w.Path("lock"))
			for worker := range 4 {
				wg.Go(func() {
					for range 15 {
						var err error
						switch worker {
						case 0:
							err = l.DoWrite(t.Context(), func(_ context.Context, h *coord.Hold) error { exclusive(h); return nil })
						case 1:
							err = m.Do(t.Context(), func(_ context.Context, h *coord.Hold) error { exclusive(h); return nil })
						default:
							err = l.DoRead(t.Context(), func(_ context.Context, h *coord.Hold) error {
								defer in.read(t)()
								assert.Zero(t, h.Token())
								return nil
							})
						}
						if !assert.NoError(t, err) {
							return
						}
					}
				})
			}
		}
		wg.Wait()
	})
}

func TestAReaderWaitsOnlyForTheNearestEarlierWriter(t *testing.T) {
	each(t, func(s scene) {
		first := coordtest.Acquire(s.T, s.lock().WriteSide())
		second := s.joins(s.lock().WriteSide())
		reader := s.joins(s.lock().ReadSide())
		line := s.line()
		s.watch(line, 0, 1, 2) // 0 by the second, 1 by itself and the reader, 2 by itself
		release(s.T, first)
		writes := coordtest.Had(s.T, second)
		s.watch(line, 1, 2) // the first writer's end did not move the reader
		waiting(s.T, reader)
		release(s.T, writes)
		release(s.T, coordtest.Had(s.T, reader))
	})
}

func TestAReaderBehindAWriterThatGaveUpWaitsForTheNextNearest(t *testing.T) {
	each(t, func(s scene) {
		first := coordtest.Acquire(s.T, s.lock().WriteSide())
		ctx, giveUp := context.WithCancel(coordtest.Limited(s.T))
		second := s.queue(ctx, s.lock().WriteSide())
		reader := s.joins(s.lock().ReadSide())
		line := s.line()
		s.watch(line, 0, 1, 2)
		giveUp()
		require.ErrorIs(s, zktest.Receive(s, coordtest.Soon, second, "the second gives up").Err, context.Canceled)
		s.watch(line, 0, 2)
		waiting(s.T, reader)
		release(s.T, first)
		release(s.T, coordtest.Had(s.T, reader))
	})
}

func TestNoReaderWaitsForALaterWriter(t *testing.T) {
	each(t, func(s scene) {
		release(s.T, coordtest.Acquire(s.T, s.lock().ReadSide())) // makes the directory
		c := coordtest.Open(s.T, s.w.ProxyConnectString())
		look := make(chan struct{}) // until then the reader has joined but not looked
		s.w.Proxy().Inject(proxy.Fault{On: proxy.Lists, Path: s.path, Do: proxy.Hold(look)})
		reader := s.joins(rw(s.T, c, s.path).ReadSide())
		writer := s.joins(s.lock().WriteSide())
		s.watch(s.line(), 0, 1)
		close(look)
		s.inTurn(reader, writer)
	})
}

func TestAllReadersBehindAWriterGetTheirTurnTogether(t *testing.T) {
	each(t, func(s scene) {
		writer := coordtest.Acquire(s.T, s.lock().WriteSide())
		var readers []<-chan grant
		for range 5 {
			readers = append(readers, s.joins(s.lock().ReadSide()))
		}
		late := s.joins(s.lock().WriteSide())
		last := s.joins(s.lock().ReadSide())
		release(s.T, writer)
		var held []*coord.Hold
		for _, r := range readers { // none of them leaves before all have come
			held = append(held, coordtest.Had(s.T, r))
		}
		line := s.line()
		s.watch(line, 4, 5, 6)
		waiting(s.T, late, last)
		release(s.T, held...)
		s.inTurn(late, last)
	})
}

func TestAWriterWaitsForTheNearestBeforeItOfAnyKind(t *testing.T) {
	each(t, func(s scene) {
		one, two := coordtest.Acquire(s.T, s.lock().ReadSide()), coordtest.Acquire(s.T, s.lock().ReadSide())
		writer := s.joins(s.lock().WriteSide())
		line := s.line()
		s.watch(line, 1, 2)
		release(s.T, two)
		s.watch(line, 0, 2)
		waiting(s.T, writer)
		release(s.T, one)
		release(s.T, coordtest.Had(s.T, writer))
	})
}

func TestAMutexOnTheSamePathIsAWriter(t *testing.T) {
	each(t, func(s scene) {
		m := coordtest.Acquire(s.T, s.mutex())
		require.Positive(s, m.Token())
		for _, side := range []acquirer{s.lock().ReadSide(), s.lock().WriteSide(), s.mutex()} {
			require.ErrorIs(s, coordtest.Err(side.TryAcquire(coordtest.Limited(s.T))), coord.ErrBusy)
		}
		reader := s.joins(s.lock().ReadSide())
		late := s.joins(s.mutex())
		last := s.joins(s.lock().ReadSide())
		line := s.line()
		release(s.T, m)
		reads := coordtest.Had(s.T, reader)
		s.watch(line, 1, 2, 3) // the mutex waits for the reader, the last for the mutex
		waiting(s.T, late, last)
		release(s.T, reads)
		h := coordtest.Had(s.T, late)
		require.Greater(s, h.Token(), m.Token())
		waiting(s.T, last)
		release(s.T, h)
		release(s.T, coordtest.Had(s.T, last))
	})
}

func TestATryNeverWaitsAndLeavesNothing(t *testing.T) {
	each(t, func(s scene) {
		l := s.lock()
		r := coordtest.Call(s, l.TryAcquireRead)
		again := coordtest.Call(s, l.TryAcquireRead)
		_, err := l.TryAcquireWrite(coordtest.Limited(s.T))
		require.ErrorIs(s, err, coord.ErrBusy)
		require.ErrorContains(s, err, s.path)

		writer := s.joins(s.lock().WriteSide())
		require.ErrorIs(s, coordtest.Err(l.TryAcquireRead(coordtest.Limited(s.T))), coord.ErrBusy,
			"a writer waits that came earlier")
		release(s.T, r, again)
		writes := coordtest.Had(s.T, writer)
		require.ErrorIs(s, coordtest.Err(l.TryAcquireRead(coordtest.Limited(s.T))), coord.ErrBusy)
		release(s.T, writes)
		require.Empty(s, s.line())
		writes = coordtest.Call(s, l.TryAcquireWrite)
		release(s.T, writes)
	})
}

func TestContendersShowWhoHoldsAndWhoWaits(t *testing.T) {
	each(t, func(s scene) {
		l := s.lock()
		require.Empty(s, coordtest.Call(s, l.Contenders))

		one, two := coordtest.Acquire(s.T, l.ReadSide()), coordtest.Acquire(s.T, s.lock().ReadSide())
		writer, reader := s.joins(s.lock().WriteSide()), s.joins(s.lock().ReadSide())
		all := coordtest.Call(s, l.Contenders)
		require.Len(s, all, 4)
		for i, want := range []struct {
			kind  string
			holds bool
		}{{"read", true}, {"read", true}, {"write", false}, {"read", false}} {
			require.Equal(s, want.kind, all[i].Kind)
			require.Equal(s, want.holds, all[i].Holds)
			require.NotEmpty(s, all[i].Owner)
		}
		require.Equal(s, one.Node(), all[0].Node)
		require.Equal(s, two.Session(), all[1].Session)
		release(s.T, two, one)
		s.inTurn(writer, reader)
	})
}

func rw(t *testing.T, c *coord.Client, path string, opts ...rwlock.Option) *rwlock.Lock {
	t.Helper()
	l, err := rwlock.New(c, path, opts...)
	require.NoError(t, err)
	return l
}

// acquirer is a side of the lock, or a mutex.
type acquirer interface {
	Acquire(ctx context.Context) (*coord.Hold, error)
	TryAcquire(ctx context.Context) (*coord.Hold, error)
}

func release(t *testing.T, holds ...*coord.Hold) {
	t.Helper()
	for _, h := range holds {
		require.NoError(t, h.Release(coordtest.Limited(t)))
	}
}

// grant is what came of an acquire in the background.
type grant = coordtest.Outcome[*coord.Hold]

// waiting requires that nothing was granted. Requests that would grant must
// have been answered by then: see scene.watch.
func waiting(t *testing.T, granted ...<-chan grant) {
	t.Helper()
	for _, g := range granted {
		require.Empty(t, g, "granted or failed before its turn")
	}
}
