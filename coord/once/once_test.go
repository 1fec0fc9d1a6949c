package once_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// scene is a test on some server, in some dialect.
type scene struct{ coordtest.Scene }

func each(t *testing.T, f func(s scene)) {
	coordtest.EachDialect(t, func(s coordtest.Scene) { f(scene{s}) })
}

func (s scene) path() string { return s.W.Path("jobs") }

// ledger returns the ledger for a client of its own.
func (s scene) ledger(opts ...once.Option) *once.Once {
	s.Helper()
	return ledger(s, s.Open(), s.path(), opts...)
}

func ledger(t testing.TB, c *coord.Client, path string, opts ...once.Option) *once.Once {
	t.Helper()
	o, err := once.New(c, path, opts...)
	require.NoError(t, err)
	return o
}

// says does a job at once.
func says(text string) once.Func {
	return func(context.Context, *once.Run) ([]byte, error) { return []byte(text), nil }
}

// never fails the test if it runs.
func never(t testing.TB) once.Func {
	return func(_ context.Context, r *once.Run) ([]byte, error) {
		t.Errorf("%s runs again", r.Key)
		return nil, nil
	}
}

var errNoLuck = errors.New("no luck")

func fails(context.Context, *once.Run) ([]byte, error) { return nil, errNoLuck }

// doing is a job in the background.
type doing struct {
	begun chan *once.Run
	end   chan error
	ended <-chan outcome
}

type outcome = coordtest.Outcome[once.Result]

func told(res once.Result, err error) outcome { return outcome{Value: res, Err: err} }

// begin has a job begin in the background, and returns when it runs.
func begin(t testing.TB, o *once.Once, key string) (*doing, *once.Run) {
	t.Helper()
	d := &doing{begun: make(chan *once.Run, 1), end: make(chan error, 1)}
	ctx := context.WithoutCancel(t.Context())
	d.ended = coordtest.Go(func() outcome {
		return told(o.Do(ctx, key, func(ctx context.Context, r *once.Run) ([]byte, error) {
			d.begun <- r
			select {
			case err := <-d.end:
				return []byte("slow"), err
			case <-ctx.Done():
				return []byte("cut"), context.Cause(ctx)
			}
		}))
	})
	return d, zktest.Receive(t, coordtest.Soon, d.begun, "the job begins")
}

func (d *doing) wait(t testing.TB) outcome {
	t.Helper()
	return zktest.Receive(t, coordtest.Soon, d.ended, "the job ends")
}

func list(t testing.TB, o *once.Once) (all []once.Result) {
	t.Helper()
	for r, err := range o.List(coordtest.Limited(t)) {
		require.NoError(t, err)
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b once.Result) int { return strings.Compare(a.Key, b.Key) })
	return all
}

func keys(all []once.Result) (names []string) {
	for _, r := range all {
		names = append(names, r.Key)
	}
	return names
}

func TestAJobThatWasDoneIsNotDoneAgain(t *testing.T) {
	each(t, func(s scene) {
		first := s.ledger()
		own, err := first.Do(coordtest.Limited(s), "report", says("42 pages"))
		require.NoError(s, err)
		require.Equal(s, once.Done, own.State)
		require.Equal(s, "42 pages", string(own.Data))
		require.Equal(s, 1, own.Attempt)
		other := s.ledger()
		for _, do := range []func(context.Context, string, once.Func) (once.Result, error){other.Do, other.TryDo, first.Do} {
			res, err := do(coordtest.Limited(s), "report", never(s))
			require.NoError(s, err)
			require.Equal(s, own, res)
		}
		res, err := other.Do(coordtest.Limited(s), "another", says(""))
		require.NoError(s, err)
		require.Empty(s, res.Data)
	})
}

func TestWhoComesMeanwhileWaitsForTheResultWithinItsContextOrIsToldThatItRuns(t *testing.T) {
	each(t, func(s scene) {
		running, run := begin(s, s.ledger(), "report")
		require.NotZero(s, run.Token())
		require.ErrorIs(s, coordtest.Err(s.ledger().TryDo(coordtest.Limited(s), "report", never(s))), coord.ErrBusy)
		require.ErrorIs(s, s.ledger().Forget(coordtest.Limited(s), "report"), coord.ErrBusy)
		impatient := s.ledger()
		require.ErrorIs(s, coordtest.Err(impatient.Do(coordtest.Within(s, 50*time.Millisecond), "report", never(s))),
			context.DeadlineExceeded)
		var waiting sync.WaitGroup
		results := make(chan outcome, 8)
		for _, o := range []*once.Once{s.ledger(), s.ledger()} {
			for range 4 {
				waiting.Go(func() { results <- told(o.Do(coordtest.Limited(s), "report", never(s))) })
			}
		}
		require.Equal(s, once.Running, list(s, s.ledger())[0].State)
		require.Empty(s, results)
		running.end <- nil
		own := running.wait(s)
		require.NoError(s, own.Err)
		waiting.Wait()
		for range 8 {
			require.Equal(s, own, <-results)
		}
	})
}

func TestTheNextCallerTriesAfterAFailure(t *testing.T) {
	each(t, func(s scene) {
		res, err := s.ledger().Do(coordtest.Limited(s), "report", fails)
		require.ErrorIs(s, err, errNoLuck)
		require.Equal(s, once.Failed, res.State)
		require.Equal(s, "no luck", list(s, s.ledger())[0].Err)
		res, err = s.ledger().Do(coordtest.Limited(s), "report", func(_ context.Context, r *once.Run) ([]byte, error) {
			require.Equal(s, 2, r.Attempt)
			require.Equal(s, once.Failed, r.Last.State)
			require.Equal(s, "no luck", r.Last.Err)
			return []byte("luck"), nil
		})
		require.NoError(s, err)
		require.Equal(s, 2, res.Attempt)
		require.Empty(s, res.Err)
	})
}

func TestAJobIsGivenUpAfterItsAttempts(t *testing.T) {
	each(t, func(s scene) {
		var ran atomic.Int32
		failing := func(context.Context, *once.Run) ([]byte, error) {
			ran.Add(1)
			return nil, errNoLuck
		}
		o := s.ledger(once.Attempts(3, time.Millisecond))
		_, err := o.TryDo(coordtest.Limited(s), "report", failing)
		require.ErrorIs(s, err, errNoLuck)
		require.EqualValues(s, 1, ran.Load(), "a try is one attempt")
		_, err = o.Do(coordtest.Limited(s), "report", failing)
		require.ErrorIs(s, err, errNoLuck)
		require.EqualValues(s, 3, ran.Load())
		for _, other := range []*once.Once{o, s.ledger(once.Attempts(2, 0))} {
			res, err := other.Do(coordtest.Limited(s), "report", never(s))
			require.ErrorIs(s, err, once.ErrFailed)
			require.ErrorContains(s, err, `"report", attempt 3: no luck`)
			require.Equal(s, 3, res.Attempt)
		}
		_, err = s.ledger().Do(coordtest.Limited(s), "report", says("for as long as it takes"))
		require.NoError(s, err)
	})
}

func TestARunIsBegunAndEndedByTwoCalls(t *testing.T) {
	each(t, func(s scene) {
		o := s.ledger(once.Attempts(2, 0))
		r, _, err := o.Begin(coordtest.Limited(s), "report")
		require.NoError(s, err)
		other, res, err := s.ledger().TryBegin(coordtest.Limited(s), "report")
		require.ErrorIs(s, err, coord.ErrBusy)
		require.Nil(s, other)
		require.Equal(s, once.Running, res.State)
		res, err = r.End(coordtest.Limited(s), nil, errNoLuck)
		require.NoError(s, err, "it is on record")
		require.Equal(s, once.Failed, res.State)
		require.ErrorIs(s, r.Err(), coord.ErrReleased)
		r, _, err = o.TryBegin(coordtest.Limited(s), "report")
		require.NoError(s, err)
		require.Equal(s, 2, r.Attempt)
		res, err = r.End(coordtest.Limited(s), []byte("luck"), nil)
		require.NoError(s, err)
		_, err = r.End(coordtest.Limited(s), nil, nil)
		require.ErrorIs(s, err, coord.ErrReleased, "it has ended")
		r, again, err := o.Begin(coordtest.Limited(s), "report")
		require.NoError(s, err)
		require.Nil(s, r)
		require.Equal(s, res, again)
	})
}

// The session ends in the middle, as after a crash.
func TestAfterACrashAJobRunsAgainUnlessItMayRunOnceOnly(t *testing.T) {
	each(t, func(s scene) {
		c := s.Open()
		running, run := begin(s, ledger(s, c, s.path()), "report")
		s.W.ExpireSession(run.Session())
		lost := running.wait(s)
		require.ErrorIs(s, lost.Err, coord.ErrLost)
		require.Equal(s, once.Unfinished, lost.Value.State)
		require.Equal(s, once.Unfinished, list(s, s.ledger())[0].State)
		careful := s.ledger(once.Attempts(1, 0))
		for _, do := range []func(context.Context, string, once.Func) (once.Result, error){careful.Do, careful.TryDo} {
			res, err := do(coordtest.Limited(s), "report", never(s))
			require.ErrorIs(s, err, once.ErrUnfinished)
			require.ErrorContains(s, err, c.Info().Identity)
			require.Equal(s, 1, res.Attempt)
			require.Equal(s, once.Unfinished, res.State)
		}
		res, err := s.ledger().Do(coordtest.Limited(s), "report", func(_ context.Context, r *once.Run) ([]byte, error) {
			require.Equal(s, once.Unfinished, r.Last.State)
			require.Greater(s, r.Token(), run.Token())
			return []byte("again"), nil
		})
		require.NoError(s, err)
		require.Equal(s, 2, res.Attempt)
	})
}

func TestAJobThatIsForgottenIsDoneAgain(t *testing.T) {
	each(t, func(s scene) {
		o := s.ledger()
		require.NoError(s, o.Forget(coordtest.Limited(s), "report"), "there is none")
		there, _, err := s.W.Admin().Exists(s.path())
		require.NoError(s, err)
		require.False(s, there, "nothing is made for that")
		require.NoError(s, coordtest.Err(o.Do(coordtest.Limited(s), "report", says("one"))))
		require.NoError(s, s.ledger().Forget(coordtest.Limited(s), "report"))
		require.Empty(s, list(s, o))
		res, err := o.Do(coordtest.Limited(s), "report", says("two"))
		require.NoError(s, err)
		require.Equal(s, "two", string(res.Data))
		require.Equal(s, 1, res.Attempt)
	})
}

func TestTheNewestRunsAreKept(t *testing.T) {
	each(t, func(s scene) {
		all := []*once.Once{s.ledger(once.KeepLast(3)), s.ledger(once.KeepLast(3))}
		for i := range 10 {
			require.NoError(s, coordtest.Err(all[i%2].Do(coordtest.Limited(s), fmt.Sprint("run ", i), says(""))))
		}
		require.Equal(s, []string{"run 7", "run 8", "run 9"}, keys(list(s, all[0])))
		// Each attempt counts, and so does an entry whose record was deleted.
		require.ErrorIs(s, coordtest.Err(all[0].Do(coordtest.Limited(s), "run 10", fails)), errNoLuck)
		require.NoError(s, coordtest.Err(all[1].Do(coordtest.Limited(s), "run 10", says(""))))
		require.Equal(s, []string{"run 10", "run 9"}, keys(list(s, all[0])))
		require.NoError(s, all[0].Forget(coordtest.Limited(s), "run 10"))
		require.NoError(s, coordtest.Err(all[0].Do(coordtest.Limited(s), "run 10", says("anew"))))
		require.Equal(s, []string{"run 10"}, keys(list(s, all[0])))
		for i := range 4 {
			require.NoError(s, coordtest.Err(all[0].Do(coordtest.Limited(s), fmt.Sprint("late ", i), says(""))))
			if i < 2 {
				require.Contains(s, keys(list(s, all[0])), "run 10", "its newest run is")
			}
		}
		require.Equal(s, []string{"late 1", "late 2", "late 3"}, keys(list(s, all[0])))
	})
}

func TestTheRecordOfAJobThatRunsIsKept(t *testing.T) {
	each(t, func(s scene) {
		o := s.ledger(once.KeepLast(1))
		running, _ := begin(s, s.ledger(once.KeepLast(1)), "long")
		for i := range 40 {
			require.NoError(s, coordtest.Err(o.Do(coordtest.Limited(s), fmt.Sprint("short ", i), says(""))))
		}
		require.Contains(s, keys(list(s, o)), "long")
		running.end <- nil
		require.NoError(s, running.wait(s).Err)
		require.NoError(s, coordtest.Err(o.Do(coordtest.Limited(s), "long", never(s))))
		for range 3 {
			require.NoError(s, coordtest.Err(o.Do(coordtest.Limited(s), "last", says(""))))
			require.NoError(s, o.Forget(coordtest.Limited(s), "last"))
		}
		require.Empty(s, list(s, o))
	})
}

// A run prunes while it has its own job's lock.
func TestEarlierRunsOfAJobThatRunsTakeNobodysPlace(t *testing.T) {
	each(t, func(s scene) {
		o := s.ledger(once.KeepLast(3))
		run := func(key string, f once.Func, kept ...string) {
			if err := coordtest.Err(o.Do(coordtest.Limited(s), key, f)); !errors.Is(err, errNoLuck) {
				require.NoError(s, err)
			}
			require.Equal(s, kept, keys(list(s, o)))
		}
		run("tries", fails, "tries")
		run("tries", fails, "tries")
		run("done", says(""), "done", "tries")
		run("tries", fails, "done", "tries") // the first of its four is gone
		run("tries", fails, "done", "tries")
		run("tries", fails, "tries")
		entries := 0
		for i := range 5 {
			if names, _, err := s.W.Admin().Children(fmt.Sprint(s.path(), "/log/", i)); err == nil {
				entries += len(names)
			}
		}
		require.Equal(s, 3, entries)

		running, _ := begin(s, o, "long")
		for i := range 6 {
			kept := []string{"long"}
			for j := max(0, i-2); j <= i; j++ {
				kept = append(kept, fmt.Sprint("short ", j))
			}
			if i == 0 {
				kept = append(kept, "tries") // its newest run is among the last three
			}
			run(fmt.Sprint("short ", i), says(""), kept...)
		}
		running.end <- nil
		require.NoError(s, running.wait(s).Err)
		run("short 6", says(""), "short 4", "short 5", "short 6")
	})
}

func TestRecordsArePrunedByHand(t *testing.T) {
	each(t, func(s scene) {
		forever, limited := s.ledger(), s.ledger(once.KeepLast(50))
		require.NoError(s, coordtest.Err(forever.Do(coordtest.Limited(s), "kept for ever", says(""))))
		for i := range 50 {
			require.NoError(s, coordtest.Err(limited.Do(coordtest.Limited(s), fmt.Sprint(i), says(""))))
		}
		n, err := forever.Prune(coordtest.Limited(s))
		require.NoError(s, err)
		require.Zero(s, n)
		n, err = s.ledger(once.KeepLast(5)).Prune(coordtest.Limited(s))
		require.NoError(s, err)
		require.Equal(s, 45, n)
		require.Equal(s, []string{"45", "46", "47", "48", "49", "kept for ever"}, keys(list(s, forever)))
	})
}

func TestAKeyMayBeAnyShortText(t *testing.T) {
	each(t, func(s scene) {
		o := s.ledger()
		texts := []string{".", "..", "a/b", "a%2Fb", " ", "\x00", "Ünïcode", "2026-11-23T16:05:00Z", strings.Repeat("x", 200)}
		for _, key := range texts {
			res, err := o.Do(coordtest.Limited(s), key, says(key))
			require.NoError(s, err, "%q", key)
			require.Equal(s, key, res.Key)
		}
		all := list(s, o)
		require.Len(s, all, len(texts))
		for _, r := range all {
			require.Equal(s, r.Key, string(r.Data))
		}
	})
}

func TestResultsThatDoNotFitAreAFailure(t *testing.T) {
	each(t, func(s scene) {
		o := s.ledger()
		_, err := o.Do(coordtest.Limited(s), "report",
			func(context.Context, *once.Run) ([]byte, error) { return make([]byte, 2<<20), nil })
		require.ErrorIs(s, err, coord.ErrTooLarge)
		require.ErrorContains(s, err, "2097152 bytes")
		require.Equal(s, once.Failed, list(s, o)[0].State)
		large := make([]byte, 900_000)
		res, err := o.Do(coordtest.Limited(s), "report",
			func(context.Context, *once.Run) ([]byte, error) { return large, nil })
		require.NoError(s, err)
		require.Len(s, res.Data, len(large))
	})
}

func TestANodeThatIsNoRecordIsNamed(t *testing.T) {
	each(t, func(s scene) {
		c := s.Open()
		o := ledger(s, c, s.path())
		require.NoError(s, coordtest.Err(o.Do(coordtest.Limited(s), "report", says(""))))
		dir, err := once.Dir(o, "report")
		require.NoError(s, err)
		node := dir + "/report/record"
		for _, scribble := range []string{"scribble", `{"state":"failed"}`} {
			require.NoError(s, coordtest.Err(c.Txn(coordtest.Limited(s), coord.SetOp(node, []byte(scribble), -1))))
			err = coordtest.Err(o.Do(coordtest.Limited(s), "report", never(s)))
			require.ErrorIs(s, err, coord.ErrInvalid)
			require.ErrorContains(s, err, node)
		}
		for r, err := range o.List(coordtest.Limited(s)) {
			require.NoError(s, err)
			require.Equal(s, once.Corrupt, r.State)
			require.Contains(s, r.Err, node)
		}
		require.NoError(s, o.Forget(coordtest.Limited(s), "report"))
		require.NoError(s, coordtest.Err(o.Do(coordtest.Limited(s), "report", says(""))))
	})
}

// A reply has four bytes for the length of each name.
func TestProofNoListingOf100000KeysIsLargerThanAMegabyte(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	o := ledger(t, coordtest.Open(t, w.ConnectString()), "/jobs")
	for name, pattern := range map[string]string{"numbers": "%0200d", "hosts": "%d" + strings.Repeat("x", 194)} {
		sizes, largest := map[string]int{}, 0
		for i := range 100_000 {
			key := fmt.Sprintf(pattern, i)
			dir, err := once.Dir(o, key)
			require.NoError(t, err)
			sizes[dir] += 4 + len(key)
			largest = max(largest, sizes[dir])
		}
		t.Log(name, largest)
		require.Less(t, largest, 700_000, name)
	}
}

func TestProofAllJobsAreListed(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		o := ledger(b, b.Open(), "/jobs")
		var working sync.WaitGroup
		for i := range 20 {
			working.Go(func() {
				for j := range 150 {
					if _, err := o.Do(b.Context(), fmt.Sprint(i, " ", j), says("")); err != nil {
						b.Error(err)
					}
				}
			})
		}
		working.Wait()
		require.Len(b, list(b, o), 3000)
		for range o.List(b.Context()) {
			break
		}
	})
}

func TestAJobInsideOfItselfIsRefused(t *testing.T) {
	o := ledger(t, coordtest.Open(t, zktest.New(t, zktest.Embedded).ConnectString()), "/jobs")
	_, err := o.Do(coordtest.Limited(t), "report", func(ctx context.Context, _ *once.Run) ([]byte, error) {
		return nil, coordtest.Err(o.Do(ctx, "report", never(t)))
	})
	require.ErrorIs(t, err, coord.ErrInvalid)
}

func TestAJobThatHasFailedIsOverIfItMayFailOnce(t *testing.T) {
	each(t, func(s scene) {
		o := s.ledger(once.Attempts(5, 0), once.FailOnce())
		crashed, _, err := o.Begin(coordtest.Limited(s), "report")
		require.NoError(s, err)
		crashed.Abandon()
		require.ErrorIs(s, coordtest.Err(o.Do(coordtest.Limited(s), "report", fails)), errNoLuck)
		res, err := o.Do(coordtest.Limited(s), "report", never(s))
		require.ErrorIs(s, err, once.ErrFailed)
		require.Equal(s, 2, res.Attempt)
	})
}
