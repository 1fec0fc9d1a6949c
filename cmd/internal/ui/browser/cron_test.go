package browser

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/cron"
)

// leftOut is a mark of slots that were left out.
type leftOut struct {
	After, Until float64
	Slots        int
	AtUntil      bool
}

const leftOutMarks = `[...document.querySelectorAll("#rows .body .left-out")].map(({ dataset: d }) => ({ After: Number(d.after), Until: Number(d.until), Slots: Number(d.slots), AtUntil: d.atUntil === "1" }))`

// slotsBetween are the schedule's instants after one time and before another.
func slotsBetween(from, to time.Time) (all []time.Time) {
	for at := (often{}).Next(from); at.Before(to); at = (often{}).Next(at) {
		all = append(all, at)
	}
	return all
}

func TestTheTicksOfAScheduleShowWhichSlotsRanFailedWereLateOrLeftOut(t *testing.T) {
	ctx, server := startServer(t)
	servers := server.ConnectString()
	b := browse(t, ctx)
	b.do(chromedp.EmulateViewport(width, height),
		chromedp.Navigate(serve(t, ctx, servers, "--every", "200ms").url+"#r=1&open=/shop/reports"))
	c, err := cron.New(newWorker(t, ctx, servers, "scheduler").Client, "/shop/reports", often{}, cron.CatchUp(2, 0))
	require.NoError(t, err)
	type run struct{ at, begun time.Time }
	var mu sync.Mutex
	var record []run
	working, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	blocked := make(chan struct{})
	running.Go(func() {
		_ = c.Run(working, func(ctx context.Context, s *cron.Slot) ([]byte, error) {
			mu.Lock()
			record = append(record, run{s.At, time.Now()})
			n := len(record)
			mu.Unlock()
			switch n {
			case 1: // it takes until three more are due
				close(blocked)
				timer := time.NewTimer(time.Until(s.At.Add(13 * time.Second)))
				defer timer.Stop()
				<-timer.C
			case 2:
				return nil, errors.New("the printer is on fire")
			case 4:
				stop()
			}
			return nil, nil
		})
	})
	<-blocked
	b.await(`document.querySelector("#rows .body .tick[data-state=running]") !== null`)
	running.Wait()
	runs := func(states string) []string {
		return value[[]string](b,
			`[...document.querySelectorAll("#rows .body .tick")].filter((t) => `+states+
				`.includes(t.dataset.state)).map((t) => t.dataset.key).sort()`)
	}
	b.await(
		`document.querySelectorAll("#rows .body .tick").length >= 4 && !document.querySelector("#rows .body .tick[data-state=running]")`)
	var keys []string
	for _, r := range record {
		keys = append(keys, cron.Key(r.at))
	}
	slices.Sort(keys)
	require.Equal(t, keys, runs(`["done", "failed", "unfinished"]`))
	require.Equal(t, []string{cron.Key(record[1].at)}, runs(`["failed"]`))
	const lateAfter = 5 * time.Second
	var late []string
	for _, r := range record {
		if r.begun.Sub(r.at) > lateAfter {
			late = append(late, cron.Key(r.at))
		}
	}
	require.NotEmpty(t, late)
	require.Equal(t, late,
		value[[]string](b, `[...document.querySelectorAll("#rows .body .tick[data-late]")].map((t) => t.dataset.key).sort()`))

	marks := value[[]leftOut](b, leftOutMarks)
	missed := 0
	for i := range record[1:] {
		for _, at := range slotsBetween(record[i].at, record[i+1].at) {
			missed++
			require.True(t,
				slices.ContainsFunc(marks, func(m leftOut) bool { return m.After < seconds(at) && seconds(at) < m.Until+0.001 }),
				"%v was left out: %v", at, marks)
		}
	}
	require.Positive(t, missed)
	for _, m := range marks {
		missed -= m.Slots
	}
	require.Zero(t, missed, "as many as were left out: %v", marks)
	b.shows("#rows .body table", "left out, before")
	next := slotsBetween(record[len(record)-1].at, time.Now().Add(time.Minute))[0]
	require.InDelta(t, seconds(next),
		value[float64](b, `Number(document.querySelector("#rows .body .next").dataset.next)`), 0.001)
}
