//go:build linux || darwin || freebsd || openbsd

package run

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// crontab is a command line for a schedule of seconds.
func crontab(w *zktest.World, script string, options ...string) []string {
	return append(append([]string{"cron"}, options...), w.Path("cron"), "@every 1s", "--", "sh", "-c", script)
}

func TestEachSlotRunsItsCommand(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		p := cmdtest.On(t, w, crontab(w, `echo $COORD_INSTANT $COORD_ATTEMPT; test "$COORD_TOKEN" -gt 0`)...)
		var slots []time.Time
		for range 3 {
			slot, attempt, _ := strings.Cut(p.Line(), " ")
			require.Equal(t, "1", attempt)
			at, err := time.Parse(time.RFC3339, slot)
			require.NoError(t, err)
			slots = append(slots, at)
		}
		require.Less(t, slots[0], slots[1])
		p.Signal(syscall.SIGTERM)
		require.Contains(t, []int{0, 128 + int(syscall.SIGTERM)}, p.Exit())
		list := cmdtest.On(t, w, "cron", "--list", w.Path("cron")).Gives(0)
		require.Contains(t, list, cron.Key(slots[0])+"  done")
		require.Regexp(t, `\d+ slots? w\w+ left out`, list, "a busy machine may miss some")
		require.Equal(t, "no slots\nno schedule", cmdtest.On(t, w, "cron", "--list", w.Path("others")).Gives(0))
	})
}

func TestASlotThatFailsDoesNotEndTheSchedule(t *testing.T) {
	w := cmdtest.World(t)
	p := cmdtest.On(t, w, crontab(w, `echo $COORD_ATTEMPT; exit 3`, "--attempts", "2")...)
	require.Equal(t, []string{"1", "2", "1"}, []string{p.Line(), p.Line(), p.Line()})
	p.Tells("ended with status 3")
	p.Signal(syscall.SIGTERM)
	p.Exit()
	require.Contains(t, cmdtest.On(t, w, "cron", "--list", w.Path("cron")).Gives(0), "exit status 3")
}

func TestASlotWhoseProcessDiedIsRunByAnother(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		victim := cmdtest.Mortal(t, w, crontab(w, cmdtest.Stubborn)...)
		pid := victim.Number()
		other := cmdtest.On(t, w, crontab(w, `echo $COORD_ATTEMPT`)...)
		victim.Signal(syscall.SIGKILL)
		cmdtest.RequireGone(t, pid)
		require.Equal(t, "2", other.Line())
		other.Signal(syscall.SIGTERM)
		other.Exit()
	})
}

func TestASlotWhoseProcessIsToldToEndIsRunByAnother(t *testing.T) {
	w := cmdtest.World(t)
	first := cmdtest.On(t, w, crontab(w, `trap 'exit 1' TERM; echo begun; while :; do sleep 0.05; done`)...)
	require.Equal(t, "begun", first.Line())
	other := cmdtest.On(t, w, crontab(w, `echo $COORD_ATTEMPT`)...)
	first.Signal(syscall.SIGTERM)
	require.Equal(t, 1, first.Exit())
	require.Equal(t, "2", other.Line())
	other.Signal(syscall.SIGTERM)
	other.Exit()
}

func TestAScheduleIsReadByTheClockOfItsZone(t *testing.T) {
	for line, want := range map[string]string{ // after noon UTC on the day before the clocks change
		"28 Mar, 30 2 * * *":    "2026-03-29T01:00:00Z 2026-03-30T00:30:00Z",
		"28 Mar, 30 */12 * * *": "2026-03-28T23:30:00Z 2026-03-29T10:30:00Z",
		"29 Mar, 30 * * * *":    "2026-03-29T12:30:00Z 2026-03-29T13:30:00Z",
		"24 Oct, 30 2 * * *":    "2026-10-25T00:30:00Z 2026-10-26T01:30:00Z",
		"24 Oct, @every 11h":    "2026-10-24T23:00:00Z 2026-10-25T10:00:00Z",
		"24 Oct, @daily":        "2026-10-24T22:00:00Z 2026-10-25T23:00:00Z",
	} {
		day, schedule, _ := strings.Cut(line, ", ")
		now, err := time.Parse("2 Jan 2006 15", day+" 2026 12")
		require.NoError(t, err)
		v := &CronVerb{Schedule: schedule, Timezone: "Europe/Berlin"}
		s, err := v.parse(now)
		require.NoError(t, err)
		first := s.Next(now)
		require.Equal(t, want, cron.Key(first)+" "+cron.Key(s.Next(first.UTC())), line)
	}
	v := &CronVerb{Schedule: "*/30 * * * *", Timezone: "Europe/Berlin"}
	now := time.Date(2026, 10, 24, 23, 50, 0, 0, time.UTC)
	s, err := v.parse(now)
	require.NoError(t, err)
	for i := range 5 { // 2:00, 2:30, 2:00, 2:30, 3:00
		now = s.Next(now.UTC())
		require.Equal(t, time.Date(2026, 10, 25, 0, 30*i, 0, 0, time.UTC), now.UTC())
	}
}

// Crontabs have 7 for Sunday, too.
func TestTheSeventhWeekdayIsSunday(t *testing.T) {
	for schedule, want := range map[string]string{
		"0 3 * * 7":       "0 3 * * 0",
		"0 3 * * 5-7":     "0 3 * * 5,6,0",
		"0 3 * * 1-7/2":   "0 3 * * 1,3,5,0",
		"0 3 * * 0-7":     "0 3 * * 0,1,2,3,4,5,6,0",
		"0 3 * * 2,7":     "0 3 * * 2,0",
		"7 7 7 7 sun":     "7 7 7 7 sun",
		"0 3 * * 8":       "0 3 * * 8",
		"@every 7s":       "@every 7s",
		"0 3 * * mon-fri": "0 3 * * mon-fri",
		"*/7 3 * * */2":   "*/7 3 * * */2",
	} {
		require.Equal(t, want, sundays(schedule))
		if schedule != "0 3 * * 8" {
			_, err := (&CronVerb{Schedule: schedule, Timezone: "UTC"}).parse(time.Now())
			require.NoError(t, err, schedule)
		}
	}
}

func TestAnIntervalIsSomeWholeSeconds(t *testing.T) {
	for _, every := range []string{"0s", "-5s", "1ms", "1500ms", "x"} {
		_, err := (&CronVerb{Schedule: "@every " + every, Timezone: "UTC"}).parse(time.Now())
		require.Error(t, err, every)
	}
}
