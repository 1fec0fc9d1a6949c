package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/virtual"
)

// fake is a hold that ends on demand.
type fake struct {
	ctx    context.Context
	end    context.CancelCauseFunc
	window time.Time
}

func newFake() *fake {
	ctx, end := context.WithCancelCause(context.Background())
	return &fake{ctx, end, time.Now().Add(time.Hour)}
}

func (f *fake) Done() <-chan struct{}         { return f.ctx.Done() }
func (f *fake) Err() error                    { return context.Cause(f.ctx) }
func (f *fake) Deadline() time.Time           { return f.window }
func (f *fake) Token() int64                  { return 7 }
func (f *fake) Release(context.Context) error { f.end(errors.New("released")); return nil }

func acquire(t *testing.T, r *Recorder, f *fake) *Grant[*fake] {
	t.Helper()
	g, err := Acquire(r, "a", key, Exclusive, func() (*fake, error) { return f, nil })
	require.NoError(t, err)
	t.Cleanup(func() { f.end(errors.New("the test is over")) })
	return g
}

func granted(r *Recorder, client string, token int64) *Op {
	op := r.Call(client, key, Exclusive)
	op.End(OK, nil, Token(token))
	return op
}

func TestTimesAreVirtualInABubbleAndNoTwoAreEqual(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		r := New()
		op := r.Call("a", key, Put, Item("x"))
		time.Sleep(time.Hour)
		op.End(OK, nil)
		r.Call("a", key, Take).End(Failed, errors.New("empty"))
		records := r.Records()
		require.Equal(t, time.Hour, records[0].Return.Truncate(time.Second))
		require.Greater(t, records[1].Call, records[0].Return)
		require.Greater(t, records[1].Return, records[1].Call)
		require.Equal(t, "empty", records[1].Err)
	})
}

func TestTheLifeOfAHoldIsRecorded(t *testing.T) {
	r := New()
	g := acquire(t, r, newFake())
	require.True(t, g.Trusted())
	require.NoError(t, g.Release(t.Context()))
	<-g.Recorded()
	records := r.Records()
	require.Len(t, records, 2)
	require.EqualValues(t, 7, records[0].Token)
	require.Equal(t, Release, records[1].Kind)
	require.Equal(t, records[0].ID, records[1].Of)
	all := spans(records, Exclusive)
	require.Equal(t, records[1].Call, all[0].to)
}

func TestAGrantWhoseReleaseWasRefusedEndsWithItsHold(t *testing.T) {
	certain := func(error) bool { return false }
	for name, lost := range map[string]bool{"before the refusal": true, "after it": false} {
		t.Run(name, func(t *testing.T) {
			r, f, loss := New(), newFake(), errors.New("lost")
			g := acquire(t, r, f)
			refused := g.End(Ack, certain, func() error {
				if lost {
					f.end(loss)
					<-g.Recorded() // what waited for the end has seen it, and a release under way
				}
				return loss
			})
			require.Error(t, refused)
			f.end(loss)
			<-g.Recorded()
			records := r.Records()
			require.Len(t, records, 3)
			require.Equal(t, []any{Ack, Failed, Lost}, []any{records[1].Kind, records[1].Outcome, records[2].Kind})
		})
	}
}

func TestALossCountsFromTheEndOfTheWindowIfThatCameFirst(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		r, f := New(), newFake()
		f.window = time.Now().Add(time.Second)
		g := acquire(t, r, f)
		time.Sleep(time.Minute)
		f.end(errors.New("window over"))
		<-g.Recorded()
		require.False(t, g.Trusted())
		require.NoError(t, g.Release(t.Context()))
		all := spans(r.Records(), Exclusive)
		require.Equal(t, time.Second, all[0].to)
	})
}

func TestALossBeforeTheWindowsEndCountsFromWhenItShows(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		r, f := New(), newFake()
		g := acquire(t, r, f)
		time.Sleep(time.Minute)
		f.end(errors.New("expired"))
		<-g.Recorded()
		require.Equal(t, time.Minute, spans(r.Records(), Exclusive)[0].to.Truncate(time.Millisecond))
	})
}

func TestALossCountsFromTheLastCheckOnAMachineThatIsBusy(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		r, f := New(), newFake()
		r.ByChecks()
		g := acquire(t, r, f)
		time.Sleep(time.Second)
		require.True(t, g.Trusted())
		time.Sleep(time.Second)
		f.end(errors.New("disconnected"))
		<-g.Recorded()
		require.Equal(t, time.Second, spans(r.Records(), Exclusive)[0].to)

		late := newFake()
		late.window = time.Now().Add(time.Second)
		g = acquire(t, r, late)
		time.Sleep(time.Minute)
		late.end(coord.ErrWindowOver)
		<-g.Recorded()
		require.Equal(t, 3*time.Second, spans(r.Records(), Exclusive)[1].to)
	})
}

func TestAHoldThatWasLostBeforeItWasReturnedWasNeverTrusted(t *testing.T) {
	r, f := New(), newFake()
	f.end(errors.New("expired"))
	<-acquire(t, r, f).Recorded()
	require.Empty(t, spans(r.Records(), Exclusive))
}

func TestAnAcquisitionThatFailsIsNoGrant(t *testing.T) {
	r := New()
	_, err := Acquire(r, "a", key, Exclusive, func() (*fake, error) { return nil, errors.New("no") })
	require.Error(t, err)
	require.Empty(t, spans(r.Records(), Exclusive))
	require.Equal(t, Failed, r.Records()[0].Outcome)
}

func TestABreakEndsWhatTheClientHoldsAndIsAcquiring(t *testing.T) {
	r := New()
	acquire(t, r, newFake())
	r.Call("a", "/other", Exclusive)
	r.Call("b", key, Exclusive)
	released := acquire(t, r, newFake())
	require.NoError(t, released.Release(t.Context()))
	from := time.Now()
	within := acquire(t, r, newFake())
	require.NoError(t, within.Release(t.Context()))
	require.Equal(t, 2, r.Break("a", key, 0, "expired", from, 0))
	require.Equal(t, 3, r.Break("a", "", 0, "expired", from, 0))
	for _, end := range spans(r.Records(), Exclusive) {
		require.NotEqual(t, never, end.to)
	}
}

func TestABreakIsRecordedForANodeBetweenTwoTurns(t *testing.T) {
	r := New()
	turn := func() { r.Call("a", key, Release, Of(granted(r, "a", 7))).End(OK, nil) }
	turn()
	require.Zero(t, r.Break("a", key, 0, "node deleted", time.Now(), time.Minute), "no turn is under way")
	turn()
	all := spans(r.Records(), Exclusive)
	require.Len(t, all, 1, "the second turn is of a broken node")
	require.Equal(t, 1, all[0].ID)
}

// A client holds a node, is granted another after the deletion of either, and
// then a further turn of both.
func TestABreakOfANodeExcusesNoGrantOfAnother(t *testing.T) {
	for node, excused := range map[int64][]int64{7: {7, 7}, 8: {8, 8}, 9: nil} {
		hit := map[int64]int{7: 2, 8: 1, 9: 1}[node] // a grant that is to come may be of any node
		r := New()
		granted(r, "a.1", 7)
		later := r.Call("a.2", key, Exclusive)
		require.Equal(t, hit, r.Break("a.", key, node, "node deleted", time.Now(), time.Minute))
		later.End(OK, nil, Token(8))
		for _, token := range []int64{7, 8} {
			granted(r, "a.3", token)
		}
		ended := []int64{7, 8, 7, 8}
		for _, s := range spans(r.Records(), Exclusive) {
			if i := slices.Index(ended, s.Token); s.to == never {
				ended = slices.Delete(ended, i, i+1)
			}
		}
		require.ElementsMatch(t, excused, ended)
	}
}

func TestABreakTellsTheNewestTokenThatWasSeenByThen(t *testing.T) {
	r := New()
	for _, token := range []int64{5, 9, 7} {
		granted(r, "a", token)
	}
	from := time.Now()
	granted(r, "a", 11)
	r.Break("a", key, 0, "expired", from, 0)
	all := r.Records()
	require.Equal(t, Broken, all[len(all)-1].Kind)
	require.EqualValues(t, 9, all[len(all)-1].Token)
}

func TestRecordsOfAnotherProcessAreTakenInWithItsTimes(t *testing.T) {
	here, there := New(), New()
	var lines []Record
	there.Sink(func(r Record) { lines = append(lines, r) })
	g := acquire(t, there, newFake())
	require.NoError(t, g.Release(t.Context()))
	acquire(t, there, newFake())
	here.Call("b", key, Exclusive).End(Failed, nil)
	for _, r := range lines {
		here.Import("child", r, there.Begin().Sub(here.Begin()))
	}
	all := spans(here.Records(), Exclusive)
	require.Len(t, here.Records(), 4)
	require.Len(t, all, 2)
	require.NotEqual(t, never, all[0].to)
	require.Equal(t, never, all[1].to)
	last := here.Records()[2]
	last.ID, last.Client = 99, "a.2"
	last.Call, last.Return, last.Outcome = last.Return+time.Minute, last.Return+2*time.Minute, Failed
	here.Import("other", last, 0)
	here.Call("a.3", "/other", Exclusive).End(OK, nil, Token(12))
	require.Equal(t, 1, here.Break("a.3", "/other", 0, "deleted", here.Begin(), time.Hour), "which is no sign of life")
	here.Died("a")
	require.Equal(t, last.Return, spans(here.Records(), Exclusive)[1].to, "a release after that may not have been told")
}

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	r := New()
	r.Call("a", key, Enter).End(OK, nil, Round(3), Verdict("fine"))
	r.Call("a", key, Put, Item("x"))
	for _, written := range r.Records() {
		var read Record
		require.NoError(t, json.Unmarshal([]byte(written.String()), &read))
		require.Equal(t, written, read)
	}
}

// verdict stands for a test whose failure is wanted.
type verdict struct {
	testing.TB
	said []string
}

func (v *verdict) Helper()                      {}
func (v *verdict) Errorf(f string, args ...any) { v.said = append(v.said, fmt.Sprintf(f, args...)) }
func (v *verdict) Logf(f string, args ...any)   { v.said = append(v.said, fmt.Sprintf(f, args...)) }

func TestAFailureKeepsTheHistoryItsNotesAndAPicture(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("ZKTEST_ARTEFACTS", dir)
	r := New()
	r.Note("seed %d", 42)
	acquire(t, r, newFake())
	acquire(t, r, newFake())
	v := &verdict{TB: t}
	violations, undecided := Check(v, r, Mutex(key), ReadersWriter("/other"))
	require.Positive(t, violations)
	require.Zero(t, undecided)
	require.Len(t, v.said, 2)
	require.Contains(t, v.said[0], "overlap")
	require.Contains(t, v.said[1], dir)
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			found[entry.Name()] = string(data)
		}
		return err
	}))
	require.Contains(t, found["notes.txt"], "seed 42")
	require.Contains(t, found["history.jsonl"], `"kind":"acquire"`)
	require.Contains(t, found["mutex--key-1.html"], "<html")
	require.Len(t, found, 3)
}

func TestAHistoryThatKeepsThePromisesKeepsNothing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("ZKTEST_ARTEFACTS", dir)
	r := New()
	require.NoError(t, acquire(t, r, newFake()).Release(t.Context()))
	violations, _ := Check(t, r, Mutex(key))
	require.Zero(t, violations)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestWhatTheModelCannotDecideInTimeIsCounted(t *testing.T) {
	var s story
	s.hold("a", Exclusive, 10, 20, Release, 1)
	parts := Mutex(key).parts(s.records)
	bad, undecided := judge(Mutex(key).model, parts, -1)
	require.Empty(t, bad)
	require.Equal(t, len(parts), undecided)
}

func TestARefusalHasTheTimeOfTheAttempt(t *testing.T) {
	r := New()
	before := time.Now()
	r.Refused("a", key, 7, before)
	rec := r.Records()[0]
	require.Equal(t, Refused, rec.Kind)
	require.EqualValues(t, 7, rec.Token)
	require.Equal(t, before.Sub(r.Begin()), rec.Call)
	require.GreaterOrEqual(t, rec.Return, rec.Call)
}

func TestABreakReachesGrantsThatEndedBeforeOneWhoseLossIsDatedBack(t *testing.T) {
	r := New()
	r.last = 2 * recently // long after the beginning
	before := r.begin.Add(r.last)
	loss := errors.New("session over")
	granted(r, "c0.lock", 1).Lost(time.Time{}, loss)
	granted(r, "c1.lock", 1).Lost(r.begin, loss) // before it could be trusted
	require.Equal(t, 1, r.Break("c0.", "", 0, "session ended", before, time.Second))
	require.Equal(t, 1, r.Break("c1.", "", 0, "session ended", before, time.Second), "it was returned after the break")
}

// The request that gives an item back is sent before the break, and its client
// learns only after it that the servers had not carried it out.
func TestABreakReachesAGrantWhoseEndIsUnderWay(t *testing.T) {
	r := New()
	r.Call("p", key, Put, Item("x")).End(OK, nil)
	first := r.Call("c0.queue", key, Receive)
	first.End(OK, nil, Item("x"))
	ack := r.Call("c0.queue", key, Ack, Of(first))
	from := time.Now()
	require.Equal(t, 1, r.Break("c0.", "", 0, "session ended", from, time.Second))
	second := r.Call("c1.queue", key, Receive)
	second.End(OK, nil, Item("x"))
	ack.End(Failed, errors.New("lost"))
	first.Lost(time.Time{}, errors.New("session over"))
	r.Call("c1.queue", key, Ack, Of(second)).End(OK, nil)
	require.Empty(t, Queue(key, true).Judge(r.Records()).Violations)
	require.Zero(t, r.Break("c0.", "", 0, "session ended", time.Now(), time.Second), "its end is over")
}
