package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const timeout = 10 * time.Second

// at is a moment so many milliseconds after the session's handshake.
type clock struct{ start time.Time }

func (c clock) at(ms int) time.Time { return c.start.Add(time.Duration(ms) * time.Millisecond) }

func begun(lag time.Duration) (*trust, clock) {
	c := clock{time.Now()}
	var tr trust
	tr.created(c.start, timeout, lag)
	return &tr, c
}

// end is the window's end in milliseconds after the handshake, the margin not
// taken off.
func (c clock) end(tr *trust) int {
	now := time.Now()
	return int(tr.deadline(now, now.Round(0)).Add(tr.margin()).Sub(c.start) / time.Millisecond)
}

func TestTheHandshakeThatCreatesTheSessionOpensTheWindow(t *testing.T) {
	tr, c := begun(time.Second)
	require.Equal(t, 10_000, c.end(tr))
}

func TestAnAnswerToAReadProvesNothing(t *testing.T) {
	tr, c := begun(time.Second)
	tr.ack(c.at(5000), c.at(5000), false)
	require.Equal(t, 10_000, c.end(tr))
}

func TestAnAcknowledgedWriteProvesRequestsThatAreHalfATickOlder(t *testing.T) {
	tr, c := begun(time.Second)
	tr.ack(c.at(2000), c.at(2000), false)
	tr.ack(c.at(2500), c.at(2500), false)
	tr.ack(c.at(3100), c.at(3100), true)
	require.Equal(t, 12_000, c.end(tr), "the request at 2.5 s may not have reached the leader")
	tr.ack(c.at(3600), c.at(3600), true)
	require.Equal(t, 12_500, c.end(tr))
}

func TestARequestProvesNothingOfTheTimeBeforeItsAnswer(t *testing.T) {
	tr, c := begun(time.Second)
	tr.ack(c.at(2000), c.at(2010), false)
	// A stall until 7 s delivers all at once what was sent meanwhile.
	tr.ack(c.at(4000), c.at(7000), false)
	tr.ack(c.at(6900), c.at(7010), true)
	require.Equal(t, 12_000, c.end(tr), "the leader may not have been told since")
	tr.ack(c.at(8000), c.at(8010), true)
	require.Equal(t, 14_000, c.end(tr))
}

func TestAWriteAloneProvesNothingYet(t *testing.T) {
	tr, c := begun(time.Second)
	tr.ack(c.at(4000), c.at(4000), true)
	require.Equal(t, 10_000, c.end(tr))
	tr.ack(c.at(5000), c.at(5000), true)
	require.Equal(t, 14_000, c.end(tr))
}

func TestAReconnectCountsOnceAWriteIsAcknowledged(t *testing.T) {
	tr, c := begun(5 * time.Second)
	tr.reattached(c.at(3000))
	require.Equal(t, 10_000, c.end(tr))
	tr.ack(c.at(3001), c.at(3001), true)
	require.Equal(t, 13_000, c.end(tr))
}

func TestAWriteSentBeforeTheReconnectDoesNotProveIt(t *testing.T) {
	tr, c := begun(5 * time.Second)
	tr.reattached(c.at(3000))
	tr.ack(c.at(2900), c.at(2900), true)
	require.Equal(t, 10_000, c.end(tr))
}

func TestTheWindowNeverShrinks(t *testing.T) {
	tr, c := begun(time.Second)
	last := c.end(tr)
	for ms := 0; ms < 60_000; ms += 370 {
		tr.ack(c.at(ms), c.at(ms), ms%3 == 0)
		now := c.end(tr)
		require.GreaterOrEqual(t, now, last)
		last = now
	}
}

func TestProbesKeepMoreThanHalfOfTheWindowOpen(t *testing.T) {
	for _, tick := range []time.Duration{0, 200 * time.Millisecond, 2 * time.Second} {
		lag := tick / 2
		if tick == 0 {
			lag = timeout / unknownTickShare / 2
		}
		tr, c := begun(lag)
		probed := c.start
		for next := c.start.Add(probeInterval(timeout)); next.Before(c.at(100_000)); next = next.Add(probeInterval(timeout)) {
			if probed.After(c.start.Add(timeout)) {
				left := tr.base.Add(timeout - tr.margin()).Sub(next)
				require.Greater(t, left, timeout/2, "tick %v: when the next probe is due", tick)
			}
			tr.ack(next, next, true)
			probed = next
		}
	}
}

func TestAcknowledgementsAreThinnedOut(t *testing.T) {
	tr, c := begun(time.Second)
	for i := range 100_000 {
		tr.ack(c.at(i/100), c.at(i/100), false)
	}
	require.LessOrEqual(t, len(tr.acked), 101)
}

func TestTimeThatOnlyTheWallClockSawCountsAsPassed(t *testing.T) {
	tr, c := begun(time.Second)
	slept := 3 * time.Second
	deadline := tr.deadline(c.at(1000), c.at(1000).Round(0).Add(slept))
	require.Equal(t, c.start.Add(timeout-tr.margin()-slept), deadline)
	require.Equal(t, deadline, tr.deadline(c.at(2000), c.at(2000).Round(0).Add(slept)), "counted once")
}

func TestAClockThatIsSetBackChangesNothing(t *testing.T) {
	tr, c := begun(time.Second)
	deadline := tr.deadline(c.at(1000), c.at(1000).Round(0).Add(-time.Hour))
	require.Equal(t, c.start.Add(timeout-tr.margin()), deadline)
}

func TestAClientThatOnlyReadsRemembersNoMoreThanAWindow(t *testing.T) {
	tr, c := begun(0)
	for at := time.Duration(0); at < 100*timeout; at += timeout / 100 {
		tr.ack(c.start.Add(at), c.start.Add(at), false)
	}
	require.LessOrEqual(t, len(tr.acked), 101)
}
