package coord_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// looking starts a wait and returns when it sleeps, or is over. looks counts.
func looking(b bubble, c *coord.Client, looks *atomic.Int32, look func(v *coord.View) (bool, error)) <-chan error {
	over := coordtest.Go(func() error {
		return c.Wait(b.Context(), func(v *coord.View) (bool, error) {
			looks.Add(1)
			return look(v)
		})
	})
	time.Sleep(time.Second)
	return over
}

// made returns a client of which the test has made these nodes.
func made(b bubble, paths ...string) (waiter, other *coord.Client) {
	b.Helper()
	waiter, other = b.Open(), b.Open()
	for _, path := range paths {
		require.NoError(b, other.Create(b.Context(), path, []byte("0")))
	}
	return waiter, other
}

func TestALookIsCalledAgainWhenWhatItReadHasChanged(t *testing.T) {
	exists := func(v *coord.View, path string) error {
		_, _, err := v.Exists(path)
		return err
	}
	for name, it := range map[string]struct {
		read   func(v *coord.View) error
		change coord.Op
	}{
		"the data": {
			func(v *coord.View) error { _, _, err := v.Get("/a"); return err }, coord.SetOp("/a", []byte("1"), -1),
		},
		"a new child": {
			func(v *coord.View) error { _, _, err := v.Children("/a"); return err }, coord.CreateOp("/a/c", nil),
		},
		"a new node":       {func(v *coord.View) error { return exists(v, "/b") }, coord.CreateOp("/b", nil)},
		"a node that goes": {func(v *coord.View) error { return exists(v, "/a") }, coord.DeleteOp("/a", -1)},
	} {
		runInBubble(t, name, func(b bubble) {
			waiter, other := made(b, "/a")
			var looks atomic.Int32
			over := looking(b, waiter, &looks, func(v *coord.View) (bool, error) { return looks.Load() == 2, it.read(v) })
			require.EqualValues(b, 1, looks.Load())
			require.Empty(b, over)
			require.NoError(b, coordtest.Err(other.Txn(b.Context(), it.change)))
			require.NoError(b, <-over)
			require.EqualValues(b, 2, looks.Load())
		})
	}
}

func TestALookIsCalledAgainWhenAChannelClosesOrATimeComes(t *testing.T) {
	inBubble(t, func(b bubble) {
		waiter, _ := made(b)
		var looks atomic.Int32
		done, begun := make(chan struct{}), time.Now()
		over := looking(b, waiter, &looks, func(v *coord.View) (bool, error) {
			v.RecheckAt(begun.Add(time.Hour))
			v.RecheckAt(begun.Add(time.Minute))
			if looks.Load() == 1 {
				v.RecheckOn(done)
			}
			return looks.Load() == 3, nil
		})
		require.EqualValues(b, 1, looks.Load())
		close(done)
		require.NoError(b, <-over)
		require.Equal(b, time.Minute, time.Since(begun))
	})
}

// The second look reads three nodes, of which one is gone and one has changed.
func TestWhatHasNotChangedIsNotReadAgainNorWhatIsKnownToBeGone(t *testing.T) {
	inBubble(t, func(b bubble) {
		waiter, other := made(b, "/stays", "/changes", "/goes")
		var looks atomic.Int32
		gone := false
		var over <-chan error
		look := func(v *coord.View) (bool, error) {
			_, _, err := v.Get("/stays")
			_, _, missing := v.Get("/goes")
			data, _, changed := v.Get("/changes")
			gone = errors.Is(missing, coord.ErrNoNode)
			return string(data) == "1" && gone, errors.Join(err, changed)
		}
		require.Equal(b, zkembed.Counts{zkembed.OpGetData: 3},
			b.asked(waiter, func() { over = looking(b, waiter, &looks, look) }))
		require.Equal(b, zkembed.Counts{zkembed.OpGetData: 1, zkembed.OpNotify: 2}, b.asked(waiter, func() {
			require.NoError(b,
				coordtest.Err(other.Txn(b.Context(), coord.SetOp("/changes", []byte("1"), -1), coord.DeleteOp("/goes", -1))))
			require.NoError(b, <-over)
		}))
	})
}

// A deletion that is known is one answer: a look that makes the node and reads
// it sees the new one.
func TestANodeThatWasDeletedAndMadeAnewIsReadByTheSecondAttempt(t *testing.T) {
	inBubble(t, func(b bubble) {
		waiter, other := made(b, "/a")
		var looks atomic.Int32
		over := looking(b, waiter, &looks, func(v *coord.View) (bool, error) {
			data, _, err := v.Get("/a")
			if errors.Is(err, coord.ErrNoNode) {
				require.EqualValues(b, 2, looks.Load())
				data, _, err = v.Get("/a")
			}
			return string(data) == "2", err
		})
		require.NoError(b, coordtest.Err(other.Txn(b.Context(), coord.DeleteOp("/a", -1), coord.CreateOp("/a", []byte("1")))))
		synctest.Wait()
		require.EqualValues(b, 2, looks.Load())
		require.NoError(b, coordtest.Err(other.Set(b.Context(), "/a", []byte("2"), -1)))
		require.NoError(b, <-over)
	})
}

// A look that lists a node knows more than the report of a deletion before: if
// it took the node for gone, nothing would call it again.
func TestANodeThatIsListedAnewIsReadAnew(t *testing.T) {
	for name, read := range map[string]func(v *coord.View, path string) ([]byte, error){
		"alone": func(v *coord.View, path string) ([]byte, error) {
			data, _, err := v.Get(path)
			return data, err
		},
		"ahead": func(v *coord.View, path string) ([]byte, error) {
			v.Prefetch(path)
			data, _, err := v.Get(path)
			return data, err
		},
	} {
		runInBubble(t, name, func(b bubble) {
			waiter, other := made(b, "/dir", "/dir/a")
			over := looking(b, waiter, new(atomic.Int32), func(v *coord.View) (bool, error) {
				time.Sleep(time.Millisecond) // what the watches report is known
				_, _, err := v.Children("/dir")
				require.NoError(b, err)
				data, err := read(v, "/dir/a")
				return string(data) == "1", err
			})
			require.NoError(b,
				coordtest.Err(other.Txn(b.Context(), coord.DeleteOp("/dir/a", -1), coord.CreateOp("/dir/a", []byte("1")))))
			require.NoError(b, <-over)
		})
	}
}

func TestTheWaitsOfAProcessShareTheWatchAndTheRead(t *testing.T) {
	inBubble(t, func(b bubble) {
		waiter, other := made(b, "/a")
		var waiting sync.WaitGroup
		counts := b.asked(waiter, func() {
			for range 10 {
				waiting.Go(func() {
					require.NoError(b, waiter.Wait(b.Context(), func(v *coord.View) (bool, error) {
						data, _, err := v.Get("/a")
						return string(data) == "1", err
					}))
				})
			}
			time.Sleep(time.Second)
			require.NoError(b, coordtest.Err(other.Set(b.Context(), "/a", []byte("1"), -1)))
			waiting.Wait()
		})
		require.Equal(b, zkembed.Counts{zkembed.OpGetData: 2, zkembed.OpNotify: 1}, counts)
	})
}

func TestWhatIsReadAheadTravelsTogetherAndIsReadOnce(t *testing.T) {
	inBubble(t, func(b bubble) {
		var paths []string
		for i := range 5 {
			paths = append(paths, "/n"+strconv.Itoa(i))
		}
		waiter, _ := made(b, paths[1:]...) // one is missing
		const way = 100 * time.Millisecond
		b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpGetData}}, zkembed.DelayReply(way))
		fresh, reads := waiter.Synced(), []int{5, 1} // the existing nodes are watched then
		for i, wait := range []func(context.Context, func(*coord.View) (bool, error)) error{waiter.Wait, fresh.Wait} {
			counts := b.asked(waiter, func() {
				begun := time.Now()
				require.NoError(b, wait(b.Context(), func(v *coord.View) (bool, error) {
					v.Prefetch(paths...)
					found := 0
					for _, path := range paths {
						if _, _, err := v.Get(path); err == nil {
							found++
						}
					}
					require.Equal(b, len(paths)-1, found)
					return true, nil
				}))
				require.Equal(b, way, time.Since(begun))
			})
			require.Equal(b, reads[i], counts[zkembed.OpGetData])
		}
	})
}

func TestALostConnectionCallsTheLookAgainAndSoDoesANewSession(t *testing.T) {
	for name, cut := range map[string]func(*zkembed.Server, int64) error{
		"connection": (*zkembed.Server).DropConn, "session": (*zkembed.Server).ExpireSession,
	} {
		runInBubble(t, name, func(b bubble) {
			waiter, other := made(b, "/a")
			var looks atomic.Int32
			over := looking(b, waiter, &looks, func(v *coord.View) (bool, error) {
				data, _, err := v.Get("/a")
				_, _, missing := v.Exists("/b")
				return string(data) == "1", errors.Join(err, missing)
			})
			require.EqualValues(b, 1, looks.Load())
			require.NoError(b, cut(b.Server, waiter.Info().SessionID))
			time.Sleep(T)
			require.GreaterOrEqual(b, looks.Load(), int32(2))
			require.Empty(b, over)
			require.NoError(b, coordtest.Err(other.Set(b.Context(), "/a", []byte("1"), -1)))
			require.NoError(b, <-over)
		})
	}
}

func TestANodeThatAppearsWhileTheConnectionIsLostIsSeen(t *testing.T) {
	inBubble(t, func(b bubble) {
		waiter, other := made(b)
		var looks atomic.Int32
		over := looking(b, waiter, &looks, func(v *coord.View) (bool, error) {
			_, there, err := v.Exists("/a")
			return there, err
		})
		b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpExists}, Session: waiter.Info().SessionID, Times: 1},
			zkembed.LoseReply())
		require.NoError(b, b.Server.DropConn(waiter.Info().SessionID))
		require.NoError(b, other.Create(b.Context(), "/a", nil))
		require.NoError(b, <-over)
	})
}

func TestAWaitEndsWithItsContextItsClientAndItsLooksError(t *testing.T) {
	inBubble(t, func(b bubble) {
		waiter, other := made(b, "/a")
		channel := func(v *coord.View) (bool, error) { v.RecheckOn(b.Context().Done()); return false, nil }
		node := func(v *coord.View) (bool, error) { _, _, err := v.Get("/a"); return false, err }
		own := errors.New("own")
		require.Equal(b, own, waiter.Wait(b.Context(), func(*coord.View) (bool, error) { return false, own }))
		require.ErrorIs(b, waiter.Wait(b.Context(), func(*coord.View) (bool, error) { return false, nil }), coord.ErrInvalid)
		for _, look := range []func(*coord.View) (bool, error){channel, node} {
			ctx, cancel := context.WithCancelCause(b.Context())
			over := coordtest.Go(func() error { return waiter.Wait(ctx, look) })
			time.Sleep(time.Second)
			cancel(own)
			err := <-over
			require.ErrorIs(b, err, context.Canceled)
			require.ErrorIs(b, err, own)
			waits := []<-chan error{looking(b, waiter, new(atomic.Int32), look), looking(b, other, new(atomic.Int32), look)}
			b.Close(other)
			require.ErrorIs(b, <-waits[1], coord.ErrClosed)
			require.Empty(b, waits[0])
			b.Close(waiter)
			require.ErrorIs(b, <-waits[0], coord.ErrClosed)
			waiter, other = b.Open(), b.Open()
		}
	})
}

func TestAWaitEndsWithItsContextAlsoWhenNoServerAnswers(t *testing.T) {
	inBubble(t, func(b bubble) {
		waiter, _ := made(b, "/a")
		b.Server.Inject(zkembed.Match{PathPrefix: "/a"}, zkembed.Hang())
		for _, c := range []*coord.Client{waiter, waiter.Synced()} {
			ctx, cancel := context.WithTimeout(b.Context(), time.Second)
			begun := time.Now()
			require.ErrorIs(b, c.Wait(ctx, func(v *coord.View) (bool, error) {
				v.Prefetch("/a", "/b")
				_, _, err := v.Get("/a")
				return true, err
			}), context.DeadlineExceeded)
			require.Equal(b, time.Second, time.Since(begun))
			cancel()
		}
	})
}

func TestALookThatHasDecidedLeavesNoWatchOnWhatIsMissing(t *testing.T) {
	inBubble(t, func(b bubble) {
		waiter, _ := made(b)
		require.NoError(b, waiter.Wait(b.Context(), func(v *coord.View) (bool, error) {
			_, _, missing := v.Get("/a")
			require.ErrorIs(b, missing, coord.ErrNoNode)
			_, _, missing = v.Children("/a")
			require.ErrorIs(b, missing, coord.ErrNoNode)
			return true, nil
		}))
		require.Zero(b, b.Server.WatchCount())
	})
}

// A look that may be the last need not set a watch to find out.
func TestAPeekAnswersFromTheWatchThatThereIs(t *testing.T) {
	inBubble(t, func(b bubble) {
		waiter, other := made(b, "/a")
		peek := func(v *coord.View) string {
			data, _, known := v.Peek("/a")
			require.Equal(b, known, data != nil)
			return string(data)
		}
		var looks atomic.Int32
		var over <-chan error
		seen := make(chan string, 3)
		counts := b.asked(waiter, func() {
			over = looking(b, waiter, &looks, func(v *coord.View) (bool, error) {
				seen <- peek(v)
				if looks.Load() == 1 {
					_, _, err := v.Get("/a")
					seen <- peek(v)
					return false, err
				}
				return true, nil
			})
		})
		require.Equal(b, zkembed.Counts{zkembed.OpGetData: 1}, counts)
		require.NoError(b, coordtest.Err(other.Set(b.Context(), "/a", []byte("1"), -1)))
		require.NoError(b, <-over)
		require.Equal(b, []string{"", "0", ""}, []string{<-seen, <-seen, <-seen})
		require.Zero(b, b.Server.WatchCount())
	})
}

// A look that only peeks is called again as well.
func TestAPeekIsWatchedToo(t *testing.T) {
	inBubble(t, func(b bubble) {
		waiter, other := made(b, "/a")
		require.NoError(b, look(b, waiter, "/a"))
		var looks atomic.Int32
		over := looking(b, waiter, &looks, func(v *coord.View) (bool, error) {
			_, _, known := v.Peek("/a")
			return !known, nil
		})
		require.NoError(b, coordtest.Err(other.Set(b.Context(), "/a", []byte("1"), -1)))
		require.NoError(b, <-over)
		require.EqualValues(b, 2, looks.Load())
	})
}

// lagging returns a client of a server that does not know yet that the data of
// /a and /b have become "1".
func lagging(b bubble) *coord.Client {
	waiter, other := made(b, "/a", "/b")
	b.Server.AddFollower(tick, waiter.Info().SessionID)
	require.NoError(b,
		coordtest.Err(other.Txn(b.Context(), coord.SetOp("/a", []byte("1"), -1), coord.SetOp("/b", []byte("1"), -1))))
	return waiter
}

func TestAFreshWaitDoesNotSeeAServersPast(t *testing.T) {
	inBubble(t, func(b bubble) {
		waiter := lagging(b)
		read := func(path string, wait func(context.Context, func(*coord.View) (bool, error)) error) (seen string) {
			require.NoError(b, wait(b.Context(), func(v *coord.View) (bool, error) {
				v.Prefetch(path)
				time.Sleep(tick / 4) // it has the answer
				data, _, err := v.Get(path)
				seen = string(data)
				return true, err
			}))
			return seen
		}
		require.Equal(b, "0", read("/a", waiter.Wait), "the server does not lag")
		require.Equal(b, "1", read("/b", waiter.Synced().Wait))
	})
}

func TestAFreshLookDoesNotPeekAtAServersPast(t *testing.T) {
	inBubble(t, func(b bubble) {
		waiter := lagging(b)
		require.NoError(b, waiter.Wait(b.Context(), func(v *coord.View) (bool, error) {
			data, _, err := v.Get("/a")
			require.Equal(b, "0", string(data), "the server does not lag")
			return true, err
		}))
		require.NoError(b, waiter.Synced().Wait(b.Context(), func(v *coord.View) (bool, error) {
			_, _, known := v.Peek("/a")
			require.False(b, known, "of the server's past")
			data, _, err := v.Get("/a")
			require.Equal(b, "1", string(data))
			_, _, known = v.Peek("/a")
			require.True(b, known)
			return true, err
		}))
	})
}

// The watch of a node that stays knows nothing of waits that are over.
func TestAWaitThatIsOverLeavesNothingAtTheWatch(t *testing.T) {
	const n = 2000
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(b, c.EnsureDir(b.Context(), "/stays"))
		wait := func(ctx context.Context) error {
			return c.Wait(ctx, func(v *coord.View) (done bool, err error) {
				_, _, err = v.Get("/stays")
				return false, err
			})
		}
		over := func() {
			ctx, cancel := context.WithTimeout(b.Context(), time.Second)
			defer cancel()
			require.ErrorIs(b, wait(ctx), context.DeadlineExceeded)
		}
		over()
		before := inUse()
		for range n {
			over()
		}
		require.Less(b, (int(inUse().heap)-int(before.heap))/n, 50, "bytes for each wait that is over")
	})
}

func TestTheStatOfANodeThatIsMissingIsZero(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		stat, there, err := c.Exists(b.Context(), "/missing")
		require.NoError(t, err)
		require.False(t, there)
		require.Zero(t, stat)
		_, stat, err = c.Get(b.Context(), "/missing")
		require.ErrorIs(t, err, coord.ErrNoNode)
		require.Zero(t, stat)
	})
}
