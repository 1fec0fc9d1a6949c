package window

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const timeout = 10 * time.Second

// session is a window, and moments in milliseconds after the session's
// handshake.
type session struct {
	Window
	start time.Time
}

func begun(lag time.Duration) *session {
	s := &session{start: time.Now()}
	s.Create(s.start, timeout, lag)
	return s
}

func (s *session) at(ms int) time.Time { return s.start.Add(time.Duration(ms) * time.Millisecond) }

func (s *session) read(sent, came int)  { s.Answer(s.at(sent), s.at(came), false) }
func (s *session) write(sent, came int) { s.Answer(s.at(sent), s.at(came), true) }

// until is the window's end without the margins.
func (s *session) until() int {
	return int(s.End().Add(Skew(timeout)+Reaction(timeout)).Sub(s.start) / time.Millisecond)
}

func TestTheHandshakeThatCreatesTheSessionOpensTheWindow(t *testing.T) {
	require.Equal(t, 10_000, begun(time.Second).until())
}

func TestAnAnswerToAReadProvesNothing(t *testing.T) {
	s := begun(time.Second)
	s.read(2000, 2000)
	s.read(5000, 5000)
	s.read(8000, 8000)
	require.Equal(t, 10_000, s.until())
}

func TestTwoWritesOneAfterTheOtherProveWhatWasAnsweredALagBeforeTheFirst(t *testing.T) {
	s := begun(time.Second)
	s.read(2000, 2000)
	s.read(2500, 2500)
	s.write(3400, 3450)
	require.Equal(t, 10_000, s.until(), "the report of the requests may be lost")
	s.write(3450, 3460)
	require.Equal(t, 12_000, s.until(), "the request at 2.5 s may not have been reported")
	s.write(3500, 3510)
	require.Equal(t, 12_000, s.until())
	s.write(3600, 3610)
	require.Equal(t, 12_500, s.until())
}

func TestAWriteSentBeforeTheFirstWasAcknowledgedProvesNothing(t *testing.T) {
	s := begun(time.Second)
	s.read(2000, 2000)
	s.write(3000, 4000)
	s.write(3900, 4900)
	require.Equal(t, 10_000, s.until())
	s.write(4000, 5000)
	require.Equal(t, 12_000, s.until())
}

func TestARequestProvesNothingOfTheTimeBeforeItsAnswer(t *testing.T) {
	s := begun(time.Second)
	s.read(2000, 2010)
	// A stall until 7 s delivers the messages sent meanwhile together.
	s.read(4000, 7000)
	s.write(6900, 7010)
	s.write(7010, 7020)
	require.Equal(t, 12_000, s.until(), "the leader may not have been told since")
	s.write(8000, 8010)
	s.write(8010, 8020)
	require.Equal(t, 14_000, s.until())
}

func TestAReconnectCountsOnceAWriteIsAcknowledged(t *testing.T) {
	s := begun(5 * time.Second)
	s.Attach(s.at(3000))
	s.read(3001, 3001)
	require.Equal(t, 10_000, s.until())
	s.write(3001, 3001)
	require.Equal(t, 13_000, s.until())
}

func TestTheWindowNeverShrinks(t *testing.T) {
	s := begun(time.Second)
	last := s.until()
	for ms := 0; ms < 60_000; ms += 370 {
		s.Answer(s.at(ms), s.at(ms), ms%3 == 0)
		require.GreaterOrEqual(t, s.until(), last)
		last = s.until()
	}
}

// schedule is when writes are sent: at two intervals by turns. A chain of
// single writes has equal ones; of a pair, the second write is sent when the
// first is acknowledged.
type schedule [2]time.Duration

// quick is the round trip of the writes of a schedule.
const quick = timeout / 100

func chain(interval time.Duration) schedule { return schedule{interval, interval} }

func pairs(apart time.Duration) schedule { return schedule{quick, apart - quick} }

// writes is how many are sent in T.
func (s schedule) writes() float64 { return 2 * float64(timeout) / float64(s[0]+s[1]) }

// outlasts is the longest outage that a hold survives whenever the outage
// begins, the time to connect again included: what is left of the window just
// before a write is answered.
func (s schedule) outlasts(lag time.Duration) time.Duration {
	w, left := begun(lag), timeout
	next := w.start
	for n := 0; next.Before(w.start.Add(6 * timeout)); n++ {
		next = next.Add(s[n%2])
		if came := next.Add(quick); next.After(w.start.Add(2 * timeout)) {
			left = min(left, w.End().Sub(came))
		}
		w.Answer(next, next.Add(quick), true)
	}
	return left
}

// cheapest is the fewest writes in T with which a hold survives the outage, of
// all schedules with these first intervals.
func cheapest(outage, lag time.Duration, first []time.Duration) float64 {
	for both := timeout / 2; both > 2*quick; both -= timeout / 400 {
		for _, one := range first {
			if s := (schedule{one, both - one}); one <= both/2 && s.outlasts(lag) >= outage {
				return s.writes()
			}
		}
	}
	return math.Inf(1)
}

// The table is the one in docs/design.md.
func TestNoScheduleOfWritesThatSurvivesTheSameOutageIsCheaper(t *testing.T) {
	page, err := os.ReadFile("../../../docs/design.md")
	require.NoError(t, err)
	var every []time.Duration
	for one := quick; one <= timeout/4; one += timeout / 400 {
		every = append(every, one)
	}
	share := func(d time.Duration) string { return fmt.Sprintf("%.3f T", float64(d)/float64(timeout)) }
	for name, tick := range map[string]time.Duration{
		"not known": 0, "T/3": timeout / 3, "T/4": timeout / 4, "T/5": timeout / 5, "T/8": timeout / 8, "T/10": timeout / 10,
		"T/20": timeout / 20,
	} {
		lag := Lag(timeout, tick)
		interval := begun(lag).Interval(epoch)
		single, paired := chain(interval), pairs(2*interval)
		outage, inPairs := single.outlasts(lag), paired.outlasts(lag)
		writes, least := single.writes(), cheapest(outage, lag, every[:1])
		require.LessOrEqual(t, inPairs, outage, name)
		require.GreaterOrEqual(t, least, writes, name)
		require.GreaterOrEqual(t, cheapest(outage, lag, every), writes, name)
		row := fmt.Sprintf("| %s | %s | %s |\n", name, share(interval), share(outage))
		require.True(t, strings.Contains(string(page), row), "the table has no row %s", row)
	}
}

// Before each probe is answered, as much of the window is left as a hold
// survives, less the time to connect again.
func TestProbesKeepEnoughOfTheWindowOpen(t *testing.T) {
	for tick, share := range map[time.Duration]float64{0: 0.35, timeout / 2: 0.35, timeout / 5: 0.5, timeout / 50: 0.55} {
		s := begun(Lag(timeout, tick))
		interval, roundTrip := s.Interval(s.start), timeout/50
		left := timeout
		for next := s.start; next.Before(s.at(100_000)); next = next.Add(interval) {
			if next.After(s.start.Add(2 * timeout)) {
				left = min(left, s.End().Sub(next))
			}
			s.Answer(next, next.Add(roundTrip), true)
		}
		require.Greater(t, left.Seconds(), share*timeout.Seconds(), "tick %v, a write every %v", tick, interval)
	}
}

func TestALongTickLeavesAWindow(t *testing.T) {
	for tick := timeout / 100; tick <= timeout; tick += timeout / 100 {
		s := begun(Lag(timeout, tick))
		for next := s.start; next.Before(s.at(50_000)); next = next.Add(s.Interval(next)) {
			require.True(t, next.Before(s.End()), "tick %v", tick)
			s.Answer(next, next.Add(timeout/50), true)
		}
	}
}

func TestAnswersAreThinnedOut(t *testing.T) {
	s := begun(0)
	for i := range 100_000 {
		s.Answer(s.at(i), s.at(i), false)
		require.LessOrEqual(t, len(s.answers), 102)
	}
	for i := range 100_000 {
		s.Answer(s.at(100_000+i), s.at(200_000), i%2 == 0)
		require.LessOrEqual(t, len(s.answers), 203)
	}
}

// A write right behind a read is not lost to the thinning: it is the first of
// two.
func TestAWriteRightBehindAReadCounts(t *testing.T) {
	s := begun(time.Second)
	s.read(2000, 2001)
	s.read(4000, 4001)
	s.write(4002, 4003)
	s.write(4004, 4005)
	require.Equal(t, 12_000, s.until())
}

func TestTheLagAllowsForALeaderThatIsLate(t *testing.T) {
	require.Equal(t, 2*time.Second, Lag(timeout, 2*time.Second), "half a tick, and as much again")
	require.Equal(t, timeout*3/8, Lag(timeout, timeout/2), "half a tick, and T/8")
	require.Equal(t, Lag(timeout, timeout/2), Lag(timeout, 0), "a tick that is not known")
}

func TestTimeForWhichTheMachineWasSuspendedPasses(t *testing.T) {
	var slept time.Duration
	c := Clock{Suspended: func() time.Duration { return slept }}
	begun, wall := c.Now(), time.Now()
	slept = time.Hour
	require.GreaterOrEqual(t, c.Now().Sub(begun), time.Hour)
	require.LessOrEqual(t, c.Wall(begun).Sub(wall), -time.Hour+time.Minute)
}

func TestTheClockOfThisMachineDoesNotGoBack(t *testing.T) {
	var c Clock
	last := c.Now()
	for range 10_000 {
		now := c.Now()
		require.False(t, now.Before(last))
		last = now
	}
}

// reading is what time.Now returns when the monotonic clock shows one thing and
// the wall clock has been moved against it.
func reading(start time.Time, passed, moved time.Duration) (mono, wall time.Time) {
	return start.Add(passed), start.Add(passed + moved).Round(0)
}

func TestSuspendsThatOnlyTheWallClockSawAddUp(t *testing.T) {
	var m meter
	start, moved, passed := time.Now(), time.Duration(0), time.Duration(0)
	m.compare(reading(start, 0, 0))
	var slept time.Duration
	for range 100 {
		passed, moved = passed+40*time.Millisecond, moved+190*time.Millisecond
		slept = m.compare(reading(start, passed, moved))
	}
	require.Equal(t, 19*time.Second, slept)
}

func TestAWallClockThatIsSetBackHidesNoSuspend(t *testing.T) {
	var m meter
	start := time.Now()
	m.compare(reading(start, 0, 0))
	m.compare(reading(start, time.Second, time.Minute))
	require.Equal(t, time.Minute, m.compare(reading(start, 2*time.Second, -time.Hour)))
	require.Equal(t, 2*time.Minute, m.compare(reading(start, 3*time.Second, time.Minute-time.Hour)))
}

func TestClocksReadApartAreNoSuspend(t *testing.T) {
	var m meter
	start := time.Now()
	m.compare(reading(start, 0, 0))
	for i := range 1000 {
		apart := time.Duration(i%2) * -jitter / 2
		require.LessOrEqual(t, m.compare(reading(start, time.Duration(i)*time.Second, apart)), jitter)
	}
}
