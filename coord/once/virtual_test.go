package once_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

const T = coordtest.T

// transactions matches requests about a ledger's nodes that are transactions.
func transactions(of string, n int) zkembed.Match {
	return zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: of, Times: n}
}

// The end is on record, but its reply is lost; so is that of the beginning.
func TestAJobWhoseRepliesAreLostRunsOnce(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		o := ledger(b, b.Open(), "/jobs", once.Attempts(1, 0))
		require.NoError(b, coordtest.Err(o.Do(b.Context(), "another", says("")))) // makes the directories
		lost := b.Server.Inject(transactions("/jobs/keys", 2), zkembed.LoseReply())
		res, err := o.Do(b.Context(), "report", says("once"))
		require.NoError(b, err)
		require.Equal(b, 2, lost.Fired())
		require.Equal(b, 1, res.Attempt)
		other := ledger(b, b.Open(), "/jobs")
		again, err := other.Do(b.Context(), "report", never(b))
		require.NoError(b, err)
		require.Equal(b, res, again)
	})
}

// A holder that was cut off beyond its session goes on, and cannot overwrite
// the record of the one that followed.
func TestTheEndOfAJobThatAnotherHasTakenOverIsNotOnRecord(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		begun, goOn := make(chan bool), make(chan bool)
		ended := coordtest.Go(func() outcome {
			return told(ledger(b, c, "/jobs").Do(b.Context(), "report", func(context.Context, *once.Run) ([]byte, error) {
				close(begun)
				<-goOn // a careless job, which does not look at its context
				return []byte("the first"), nil
			}))
		})
		<-begun
		cut := b.Server.Partition(zkembed.Cut{Sessions: []int64{c.Info().SessionID}})
		res, err := ledger(b, b.Open(), "/jobs").Do(b.Context(), "report", says("the second"))
		require.NoError(b, err)
		require.Equal(b, 2, res.Attempt)
		cut.Heal()
		close(goOn)
		first := <-ended
		require.ErrorIs(b, first.Err, coord.ErrLost)
		require.Equal(b, "the first", string(first.Value.Data))
		require.Equal(b, once.Unfinished, first.Value.State)
		found := list(b, ledger(b, b.Open(), "/jobs"))
		require.Equal(b, "the second", string(found[0].Data))
	})
}

// Nobody's turn comes before the one ahead has gone, but all hear of the end.
func TestAllWhoWaitHearOfTheEndAtOnce(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		running, _ := begin(b, ledger(b, b.Open(), "/jobs"), "report")
		var waiting sync.WaitGroup
		for range 20 {
			o := ledger(b, b.Open(), "/jobs")
			waiting.Go(func() {
				if _, err := o.Do(b.Context(), "report", never(b)); err != nil {
					b.Error(err)
				}
			})
		}
		time.Sleep(time.Minute)
		slow := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpDelete}}, zkembed.Delay(time.Second))
		begun := time.Now()
		running.end <- nil
		require.NoError(b, running.wait(b).Err)
		waiting.Wait()
		require.LessOrEqual(b, time.Since(begun), 3*time.Second, "not one turn after the other")
		slow.Remove()
	})
}

// The whole job is done between a look at the record and the lock's grant.
func TestWhoIsGrantedTheLockLooksAtTheRecord(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		slow := b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpCreate}, Times: 1},
			zkembed.Delay(T/3))
		ended := coordtest.Go(func() outcome { return told(ledger(b, c, "/jobs").TryDo(b.Context(), "report", never(b))) })
		<-slow.Struck()
		own, err := ledger(b, b.Open(), "/jobs").Do(b.Context(), "report", says("meanwhile"))
		require.NoError(b, err)
		require.Empty(b, ended)
		require.Equal(b, told(own, nil), <-ended)
	})
}

// A client that lives long waits for many jobs.
func TestAWaitLeavesNoWatchOnTheRecord(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		for i := range 4 {
			crash := i > 1
			waiter, key := ledger(b, b.Open(), "/jobs"), fmt.Sprint(i)
			c := b.Open()
			running, run := begin(b, ledger(b, c, "/jobs"), key)
			ended := coordtest.Go(func() outcome { return told(waiter.Do(b.Context(), key, says("after a crash"))) })
			time.Sleep(time.Minute)
			var want error
			if crash {
				want = coord.ErrLost
				require.NoError(b, b.Server.ExpireSession(run.Session()))
			} else {
				running.end <- nil
			}
			require.ErrorIs(b, running.wait(b).Err, want)
			own := <-ended
			require.NoError(b, own.Err)
			require.Equal(b, crash, string(own.Value.Data) == "after a crash")
			time.Sleep(time.Minute)
			require.Zero(b, b.Server.WatchCount(), "%q", b.Server.Watched())
		}
	})
}

func TestAttemptsAreTheirTimeApart(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		o := ledger(b, b.Open(), "/jobs", once.Attempts(4, time.Minute))
		var at []time.Duration
		begun := time.Now()
		_, err := o.Do(b.Context(), "report", func(ctx context.Context, r *once.Run) ([]byte, error) {
			at = append(at, time.Since(begun).Round(time.Second))
			if r.Attempt < 4 {
				return nil, errNoLuck
			}
			return nil, nil
		})
		require.NoError(b, err)
		require.Equal(b, []time.Duration{0, time.Minute, 3 * time.Minute, 7 * time.Minute}, at)
		_, err = o.TryDo(b.Context(), "other", fails)
		require.ErrorIs(b, err, errNoLuck)
		other := ledger(b, b.Open(), "/jobs", once.Attempts(4, time.Minute))
		require.ErrorIs(b, coordtest.Err(other.TryDo(b.Context(), "other", never(b))), coord.ErrBusy, "too early")
		require.ErrorIs(b, coordtest.Err(other.Do(b.Within(30*time.Second), "other", never(b))), context.DeadlineExceeded)
		require.NoError(b, coordtest.Err(other.Do(b.Context(), "other", says(""))))
		require.GreaterOrEqual(b, time.Since(begun), 8*time.Minute)
	})
}

func TestOldRecordsAreDeleted(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		o := ledger(b, b.Open(), "/jobs", once.Keep(time.Hour))
		running, _ := begin(b, ledger(b, b.Open(), "/jobs", once.Keep(time.Hour)), "long")
		for i := range 40 {
			require.NoError(b, coordtest.Err(o.Do(b.Context(), fmt.Sprint("early ", i), says(""))))
		}
		time.Sleep(50 * time.Minute)
		running.end <- nil
		require.NoError(b, running.wait(b).Err)
		require.NoError(b, coordtest.Err(o.Do(b.Context(), "late", says(""))))
		require.Len(b, list(b, o), 42)
		time.Sleep(11 * time.Minute)
		require.NoError(b, coordtest.Err(o.Do(b.Context(), "one", says(""))))
		require.Less(b, len(list(b, o)), 43-10, "some")
		require.Greater(b, len(list(b, o)), 43-17, "and not all at once")
		require.NoError(b, coordtest.Err(o.Do(b.Context(), "two", says(""))))
		require.NoError(b, coordtest.Err(o.Do(b.Context(), "three", says(""))))
		require.Equal(b, []string{"late", "long", "one", "three", "two"}, keys(list(b, o)))
		time.Sleep(2 * time.Hour)
		n, err := o.Prune(b.Context())
		require.NoError(b, err)
		require.Equal(b, 5, n)
		for _, node := range b.Server.Nodes() {
			require.NotContains(b, node.Path, "record")
		}
	})
}

func TestALogGoesOnAfterItWasEmptyOrDeleted(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		o := ledger(b, b.Open(), "/jobs", once.KeepLast(1))
		for round := range 4 {
			for i := range 3 {
				require.NoError(b, coordtest.Err(o.Do(b.Context(), fmt.Sprint(i), says(""))))
			}
			require.Equal(b, []string{"2"}, keys(list(b, o)))
			require.NoError(b, o.Forget(b.Context(), "2"))
			time.Sleep(time.Second)
			require.NoError(b, coordtest.Err(ledger(b, b.Open(), "/jobs", once.Keep(1)).Prune(b.Context())))
			admin := b.Open()
			for i := range 4 {
				if dir := fmt.Sprint("/jobs/log/", i); round == 1 {
					if err := admin.Delete(b.Context(), dir, -1); !errors.Is(err, coord.ErrNoNode) {
						require.NoError(b, err)
					}
				}
			}
		}
	})
}

func TestManyWhoPruneDeleteNothingTwice(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		var working sync.WaitGroup
		for i := range 8 {
			o := ledger(b, b.Open(), "/jobs", once.KeepLast(10))
			working.Go(func() {
				for j := range 20 {
					if _, err := o.Do(b.Context(), fmt.Sprint(i, " ", j), says("")); err != nil {
						b.Error(err)
					}
				}
			})
		}
		working.Wait()
		o := ledger(b, b.Open(), "/jobs", once.KeepLast(10))
		require.NoError(b, coordtest.Err(o.Prune(b.Context())))
		require.Len(b, list(b, o), 10)
	})
}

// The holder of the lock comes to a server that lags behind, and still shows
// the run of the holder before it.
func TestOnlyTheNewestRecordSaysThatAJobIsUnfinished(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		running, _ := begin(b, ledger(b, b.Open(), "/jobs"), "report")
		c := b.Open()
		prompt := b.Server.AddFollower(0, c.Info().SessionID)
		b.Server.AddFollower(T/10, c.Info().SessionID) // it goes there when it connects again
		time.Sleep(T)
		slow := b.Server.Inject(zkembed.Match{
			Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpGetChildren2}, Times: 1,
		}, zkembed.Delay(time.Second))
		careful := ledger(b, c, "/jobs", once.Attempts(1, 0))
		ended := coordtest.Go(func() outcome { return told(careful.TryDo(b.Context(), "report", never(b))) })
		<-slow.Struck()
		running.end <- nil
		own := running.wait(b)
		prompt.Stop()
		cut := b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpGetData}, Times: 1},
			zkembed.Drop())
		require.Equal(b, own, <-ended)
		require.Equal(b, 1, cut.Fired())
	})
}

func TestAPanicIsAnEndThatIsNotOnRecord(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		o := ledger(b, b.Open(), "/jobs")
		require.Panics(b, func() {
			_, _ = o.Do(b.Context(), "report", func(context.Context, *once.Run) ([]byte, error) { panic("a bug") })
		})
		time.Sleep(time.Second)
		require.Equal(b, once.Unfinished, list(b, o)[0].State)
		require.NoError(b, coordtest.Err(o.Do(b.Context(), "report", says(""))))
	})
}

// The job ends well after its caller's context; there is time to put that on
// record.
func TestAnEndAfterTheContextsIsOnRecord(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		o := ledger(b, b.Open(), "/jobs")
		ctx, cancel := context.WithCancel(b.Context())
		_, err := o.Do(ctx, "report", func(ctx context.Context, _ *once.Run) ([]byte, error) {
			cancel()
			<-ctx.Done()
			return nil, nil
		})
		require.NoError(b, err)
		require.NoError(b, coordtest.Err(o.Do(b.Context(), "report", never(b))))
	})
}

// The requests that the package's documentation names.
func TestTheCostOfAJob(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open(coord.WithSessionTimeout(time.Hour))
		requests := func(f func() error) int {
			before := b.Server.SessionCounts(c.Info().SessionID)
			require.NoError(b, f())
			counts := b.Server.SessionCounts(c.Info().SessionID).Since(before)
			b.Log(counts)
			return counts.Total()
		}
		o := ledger(b, c, "/jobs")
		do := func(o *once.Once, key string, f once.Func) func() error {
			return func() error { return coordtest.Err(o.Do(b.Context(), key, f)) }
		}
		require.NoError(b, do(o, "first", says(""))()) // makes the directories and the version guard
		require.LessOrEqual(b, requests(do(o, "second", says(""))), 18)
		require.Equal(b, 1, requests(do(o, "second", never(b))))
		require.ErrorIs(b, do(o, "again", fails)(), errNoLuck)
		const way = 50 * time.Millisecond
		slow := b.Server.Inject(zkembed.Match{Session: c.Info().SessionID}, zkembed.DelayReply(way))
		begun := time.Now()
		require.LessOrEqual(b, requests(do(o, "again", says(""))), 10)
		require.LessOrEqual(b, time.Since(begun), 5*way)
		slow.Remove()
		k := ledger(b, c, "/jobs", once.KeepLast(2))
		for i := range 8 {
			require.NoError(b, do(k, fmt.Sprint(i), says(""))())
		}
		require.ErrorIs(b, do(o, "once more", fails)(), errNoLuck)
		require.LessOrEqual(b, requests(do(k, "once more", says(""))), 10+8+7)
	})
}

// Another has the lock, and its beginning is not on record yet.
func TestATryOfAFailedJobThatAnotherHasSaysThatItRuns(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		o := ledger(b, b.Open(), "/jobs", once.Attempts(2, time.Hour))
		other := ledger(b, b.Open(), "/jobs", once.Attempts(2, time.Hour))
		require.ErrorIs(b, coordtest.Err(o.TryDo(b.Context(), "report", fails)), errNoLuck)
		res, err := other.TryDo(b.Context(), "report", never(b))
		require.ErrorIs(b, err, coord.ErrBusy)
		require.Equal(b, once.Failed, res.State, "it is too early")
		time.Sleep(time.Hour)
		slow := b.Server.Inject(transactions("/jobs/keys", 1), zkembed.Delay(T/6))
		done := coordtest.Go(func() error { return coordtest.Err(o.TryDo(b.Context(), "report", says(""))) })
		<-slow.Struck()
		res, err = other.TryDo(b.Context(), "report", never(b))
		require.ErrorIs(b, err, coord.ErrBusy)
		require.Equal(b, once.Running, res.State)
		require.NoError(b, <-done)
	})
}

// The job ends between the read of its record and the listing of its line.
func TestAJobThatEndsMeanwhileIsNotListedAsUnfinished(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		running, _ := begin(b, ledger(b, b.Open(), "/jobs"), "report")
		c := b.Open()
		o := ledger(b, c, "/jobs")
		dir, err := once.Dir(o, "report")
		require.NoError(b, err)
		slow := b.Server.Inject(zkembed.Match{
			Session: c.Info().SessionID, PathPrefix: dir + "/report",
			Func: func(r zkembed.Request) bool {
				return r.Op != zkembed.OpGetData
			}, Times: 1,
		}, zkembed.Delay(time.Second))
		listed := coordtest.Go(func() []once.Result { return list(b, o) })
		<-slow.Struck()
		running.end <- nil
		require.NoError(b, running.wait(b).Err)
		require.Equal(b, once.Done, (<-listed)[0].State)
	})
}

// The data do not fit, and the failure cannot be put on record either.
func TestAnEndThatCannotBePutOnRecordGivesTheLockUp(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		o := ledger(b, b.Open(), "/jobs")
		r, _, err := o.Begin(b.Context(), "report")
		require.NoError(b, err)
		dir, err := once.Dir(o, "report")
		require.NoError(b, err)
		require.NoError(b, b.Open().Delete(b.Context(), dir+"/report/record", -1))
		res, err := r.End(b.Context(), make([]byte, 2<<20), nil)
		require.ErrorIs(b, err, coord.ErrTooLarge)
		require.ErrorIs(b, err, coord.ErrNoNode)
		require.Equal(b, once.Unfinished, res.State)
		require.NoError(b, coordtest.Err(ledger(b, b.Open(), "/jobs").TryDo(b.Context(), "report", says(""))))
	})
}

// The oldest entries are of jobs that run, and some jobs have several.
func TestAllRecordsThatAreNotKeptArePruned(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		o := ledger(b, b.Open(), "/jobs", once.KeepLast(1000))
		var running []*doing
		for i := range 40 {
			d, _ := begin(b, o, fmt.Sprint("long ", i))
			running = append(running, d)
		}
		for i := range 5 {
			for range 3 {
				require.ErrorIs(b, coordtest.Err(o.Do(b.Context(), fmt.Sprint("short ", i), fails)), errNoLuck)
			}
		}
		n, err := ledger(b, b.Open(), "/jobs", once.KeepLast(1)).Prune(b.Context())
		require.NoError(b, err)
		require.Equal(b, 4, n)
		require.Len(b, list(b, o), 41)
		for _, d := range running {
			d.end <- nil
			require.NoError(b, d.wait(b).Err)
		}
		n, err = ledger(b, b.Open(), "/jobs", once.KeepLast(1)).Prune(b.Context())
		require.NoError(b, err)
		require.Equal(b, 40, n)
	})
}

func TestAJobIsForgottenThoughAServerThatLagsHasNoRecordYet(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c, other := b.Open(), ledger(b, b.Open(), "/jobs")
		b.Server.AddFollower(2*time.Second, c.Info().SessionID)
		require.NoError(b, coordtest.Err(other.Do(b.Context(), "report", says("done"))))
		require.NoError(b, ledger(b, c, "/jobs").Forget(b.Context(), "report"))
		require.Empty(b, list(b, other))
	})
}

// Where records are deleted by each run, Do looks at the latest state.
func TestAServerThatLagsGivesAFormerResultOnlyWhereRecordsAreKeptForEver(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c, other := b.Open(), ledger(b, b.Open(), "/jobs")
		require.NoError(b, coordtest.Err(other.Do(b.Context(), "report", says("former"))))
		b.Server.AddFollower(2*time.Second, c.Info().SessionID)
		require.NoError(b, other.Forget(b.Context(), "report"))
		require.NoError(b, coordtest.Err(other.Do(b.Context(), "report", says("new"))))
		asks := func(want string, opts ...once.Option) {
			res, err := ledger(b, c, "/jobs", opts...).Do(b.Context(), "report", never(b))
			require.NoError(b, err)
			require.Equal(b, want, string(res.Data))
		}
		asks("former")
		asks("new", once.Keep(time.Hour))
		asks("new")
	})
}

// One record was overwritten by another program.
func TestF86ACorruptRecordIsReportedAndTheOthersAreListedAndPruned(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		o := ledger(b, c, "/jobs", once.KeepLast(1))
		for _, key := range []string{"a", "b", "c"} {
			require.NoError(b, coordtest.Err(ledger(b, c, "/jobs", once.Keep(time.Hour)).Do(b.Context(), key, says("done"))))
		}
		dir, err := once.Dir(o, "a")
		require.NoError(b, err)
		require.NoError(b, coordtest.Err(c.Set(b.Context(), dir+"/a/record", []byte("garbage"), -1)))
		is := map[string]once.State{}
		for _, r := range list(b, o) {
			is[r.Key] = r.State
		}
		require.Equal(b, map[string]once.State{"a": once.Corrupt, "b": once.Done, "c": once.Done}, is)
		require.ErrorIs(b, coordtest.Err(o.Do(b.Context(), "a", never(b))), coord.ErrInvalid)
		for _, want := range []int{1, 0} {
			n, err := o.Prune(b.Context())
			require.ErrorIs(b, err, coord.ErrInvalid, "it is reported as often as one asks")
			require.ErrorContains(b, err, "/a/record")
			require.Equal(b, want, n)
		}
		require.Equal(b, []string{"a", "c"}, keys(list(b, o)))
		require.NoError(b, coordtest.Err(o.Do(b.Context(), "d", says(""))))
		require.NoError(b, o.Forget(b.Context(), "a"))
		require.NoError(b, coordtest.Err(o.Prune(b.Context())))
		require.Equal(b, []string{"d"}, keys(list(b, o)))
	})
}

// Two records are corrupt; then two directories of the log cannot be read, or
// what ends the pruning comes after a corrupt record.
func TestAllThatKeepsRecordsFromBeingPrunedIsReported(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		o := ledger(b, c, "/jobs", once.KeepLast(1))
		for _, key := range []string{"a", "b", "c"} {
			require.NoError(b, coordtest.Err(ledger(b, c, "/jobs", once.Keep(time.Hour)).Do(b.Context(), key, says("done"))))
		}
		for _, key := range []string{"a", "b"} {
			dir, err := once.Dir(o, key)
			require.NoError(b, err)
			require.NoError(b, coordtest.Err(c.Set(b.Context(), dir+"/"+key+"/record", []byte("garbage "+key), -1)))
		}
		denied := b.Server.Inject(zkembed.Match{PathPrefix: "/jobs/log/", Ops: []zkembed.Op{zkembed.OpMulti}},
			zkembed.ReplyError(zkembed.CodeNoAuth))
		err := coordtest.Err(o.Prune(b.Context()))
		require.ErrorIs(b, err, coord.ErrNoAuth)
		require.ErrorIs(b, err, coord.ErrInvalid)
		require.ErrorContains(b, err, "garbage a")
		denied.Remove()

		err = coordtest.Err(o.Prune(b.Context()))
		require.ErrorIs(b, err, coord.ErrInvalid)
		require.ErrorContains(b, err, "garbage a")
		require.ErrorContains(b, err, "garbage b")

		b.Server.Inject(zkembed.Match{PathPrefix: "/jobs/log/1", Ops: []zkembed.Op{zkembed.OpGetData}},
			zkembed.ReplyError(zkembed.CodeNoAuth))
		b.Server.Inject(zkembed.Match{PathPrefix: "/jobs/log/2", Ops: []zkembed.Op{zkembed.OpGetData}},
			zkembed.ReplyError(zkembed.CodeNoAuth))
		err = coordtest.Err(o.Prune(b.Context()))
		require.ErrorContains(b, err, "/jobs/log/1")
		require.ErrorContains(b, err, "/jobs/log/2")
	})
}

// The context ends at any moment around the record of the attempt.
func TestF87AnAttemptCountsOnlyIfTheFunctionWasCalled(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		const way, tries = 10 * time.Millisecond, 300
		c := b.Open()
		for name, opts := range map[string][]once.Option{
			"kept": {once.Attempts(1, 0)}, "pruned": {once.Attempts(1, 0), once.KeepLast(100)},
		} {
			o := ledger(b, c, "/"+name, opts...)
			require.NoError(b, coordtest.Err(o.Do(b.Context(), "another", says("")))) // makes the directories
			slow := b.Server.Inject(zkembed.Match{Session: c.Info().SessionID}, zkembed.DelayReply(way))
			called := 0
			for i := range tries {
				key := fmt.Sprint(i)
				before := called
				_, err := o.Do(b.Within(time.Duration(i)*time.Millisecond), key, func(context.Context, *once.Run) ([]byte, error) {
					called++
					return nil, nil
				})
				if called == before {
					require.ErrorIs(b, err, context.DeadlineExceeded, key)
					time.Sleep(time.Second)
					res, err := o.Do(b.Context(), key, says("later"))
					require.NoError(b, err, key)
					require.Equal(b, 1, res.Attempt, key)
				}
			}
			slow.Remove()
			require.Positive(b, called)
			require.Less(b, called, tries)
		}
	})
}

// endedUnheard is a context whose end nobody has heard of yet.
type endedUnheard struct {
	context.Context
	ended atomic.Bool
}

func (c *endedUnheard) Err() error {
	if c.ended.Load() {
		return context.Canceled
	}
	return nil
}

func TestAContextThatEndsWhenTheAttemptIsOnRecordTakesItBack(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		o := ledger(b, b.Open(), "/jobs", once.Attempts(1, 0))
		ctx := &endedUnheard{Context: context.WithoutCancel(b.Context())}
		b.Server.Inject(zkembed.Match{
			Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/jobs/keys",
			Func: func(zkembed.Request) bool {
				ctx.ended.Store(true)
				return false
			},
		}, zkembed.Drop())
		require.ErrorIs(b, coordtest.Err(o.Do(ctx, "report", never(b))), context.Canceled)
		require.True(b, ctx.ended.Load())
		res, err := o.Do(b.Context(), "report", says("later"))
		require.NoError(b, err)
		require.Equal(b, 1, res.Attempt)
	})
}

// A failure is on record, and the attempt after it is given up: the record is
// as it was, and can be pruned.
func TestAnAttemptThatIsTakenBackLeavesTheOneBeforeOnRecord(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		o := ledger(b, c, "/jobs", once.KeepLast(1))
		require.ErrorIs(b, coordtest.Err(o.Do(b.Context(), "report", fails)), errNoLuck)
		before := list(b, o)
		r, _, err := o.Begin(b.Context(), "report")
		require.NoError(b, err)
		require.Equal(b, 2, r.Attempt)
		require.NoError(b, coordtest.Err(o.Do(b.Context(), "between", says(""))))
		require.NoError(b, coordtest.Err(o.Prune(b.Context()))) // the first attempt's entry in the log goes
		require.NoError(b, r.Withdraw(b.Context()))
		require.ErrorIs(b, r.Err(), coord.ErrReleased)
		require.Contains(b, list(b, o), before[0])
		require.NoError(b, coordtest.Err(o.Do(b.Context(), "another", says(""))))
		require.NoError(b, coordtest.Err(o.Prune(b.Context())))
		require.Equal(b, []string{"another"}, keys(list(b, o)))
	})
}

func TestAJobDoesNotRunWhenItsClientIsClosed(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		o := ledger(b, c, "/jobs")
		require.NoError(b, coordtest.Err(o.Do(b.Context(), "first", says(""))))
		b.Close(c)
		require.ErrorIs(b, coordtest.Err(o.Do(b.Context(), "second", never(b))), coord.ErrClosed)
		require.ErrorIs(b, coordtest.Err(o.TryDo(b.Context(), "second", never(b))), coord.ErrClosed)
	})
}
