package cron_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/cron"
)

// daily is a schedule of times of day, by the clock that it is given.
type daily []time.Duration

func (d daily) Next(t time.Time) time.Time {
	for day := t.Day(); ; day++ {
		for _, at := range d {
			hour, minute := int(at.Hours()), int(at.Minutes())%60
			if n := time.Date(t.Year(), t.Month(), day, hour, minute, 0, 0, t.Location()); n.After(t) {
				return n
			}
		}
	}
}

// named is a schedule of every half hour that a clock shows, as the parsers of
// cron expressions make it: a time of day that comes twice is two slots.
var named = scheduleFunc(func(t time.Time) time.Time {
	return t.Truncate(30 * time.Minute).Add(30 * time.Minute).In(t.Location())
})

// slots lists the slots of a span of time, by the clock in loc.
func slots(s cron.Schedule, loc *time.Location, from time.Time, span time.Duration) (all []string) {
	for t := s.Next(from.UTC()); t.Before(from.Add(span)); t = s.Next(t.UTC()) {
		all = append(all, t.In(loc).Format("2 15:04 MST"))
	}
	return all
}

func TestOnBothChangesOfTheClockEachTimeOfDayIsOneSlot(t *testing.T) {
	for zone, c := range map[string]struct {
		forward, back   time.Time // noon before
		skipped, double daily
		gone, twice     []string
	}{
		"Europe/Berlin": {
			time.Date(2026, 3, 28, 11, 0, 0, 0, time.UTC),
			time.Date(2026, 10, 24, 10, 0, 0, 0, time.UTC),
			daily{2*time.Hour + 30*time.Minute, 2*time.Hour + 45*time.Minute, 3 * time.Hour},
			daily{2 * time.Hour, 2*time.Hour + 30*time.Minute, 3 * time.Hour},
			[]string{"29 03:00 CEST", "30 02:30 CEST", "30 02:45 CEST", "30 03:00 CEST"},
			[]string{"25 02:00 CEST", "25 02:30 CEST", "25 03:00 CET", "26 02:00 CET", "26 02:30 CET"},
		},
		"America/New_York": {
			time.Date(2026, 3, 7, 17, 0, 0, 0, time.UTC),
			time.Date(2026, 10, 31, 16, 0, 0, 0, time.UTC),
			daily{2*time.Hour + 30*time.Minute},
			daily{1*time.Hour + 30*time.Minute},
			[]string{"8 03:00 EDT", "9 02:30 EDT"},
			[]string{"1 01:30 EDT", "2 01:30 EST"},
		},
		"Australia/Lord_Howe": { // half an hour
			time.Date(2026, 10, 3, 2, 0, 0, 0, time.UTC),
			time.Date(2026, 4, 4, 2, 0, 0, 0, time.UTC),
			daily{2*time.Hour + 15*time.Minute},
			daily{1*time.Hour + 45*time.Minute},
			[]string{"4 02:30 +11", "5 02:15 +11"},
			[]string{"5 01:45 +11", "6 01:45 +1030"},
		},
	} {
		t.Run(zone, func(t *testing.T) {
			loc, err := time.LoadLocation(zone)
			require.NoError(t, err)
			require.Equal(t, c.gone, slots(cron.WallClock(loc, c.skipped), loc, c.forward, 40*time.Hour))
			require.Equal(t, c.twice, slots(cron.WallClock(loc, c.double), loc, c.back, 40*time.Hour))
		})
	}
}

// The clock shows 2:15 for the second time.
func TestATimeOfDayThatComesTwiceIsOver(t *testing.T) {
	loc, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	next := cron.WallClock(loc, daily{2*time.Hour + 30*time.Minute}).Next(time.Date(2026, 10, 25, 1, 15, 0, 0, time.UTC))
	require.Equal(t, "26 02:30 CET", next.In(loc).Format("2 15:04 MST"))
}

func TestInAZoneTheSlotsAreThoseThatTheScheduleNames(t *testing.T) {
	loc, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	require.Equal(t, []string{"29 01:30 CET", "29 03:00 CEST", "29 03:30 CEST"},
		slots(cron.In(loc, named), loc, time.Date(2026, 3, 29, 0, 10, 0, 0, time.UTC), 90*time.Minute))
	require.Equal(t, []string{"25 02:00 CEST", "25 02:30 CEST", "25 02:00 CET", "25 02:30 CET", "25 03:00 CET"},
		slots(cron.In(loc, named), loc, time.Date(2026, 10, 24, 23, 50, 0, 0, time.UTC), 150*time.Minute))
	require.Equal(t, []string{"28 00:00 CET", "29 00:00 CET", "30 00:00 CEST"},
		slots(cron.In(loc, daily{0}), loc, time.Date(2026, 3, 27, 11, 0, 0, 0, time.UTC), 72*time.Hour))
}

func TestAScheduleThatEndsOrStandsStillDoesSoInAZone(t *testing.T) {
	for _, in := range []func(*time.Location, cron.Schedule) cron.Schedule{cron.In, cron.WallClock} {
		now := time.Date(2026, 3, 29, 0, 10, 0, 0, time.UTC)
		require.Zero(t, in(time.UTC, scheduleFunc(func(time.Time) time.Time { return time.Time{} })).Next(now))
		require.False(t, in(time.UTC, scheduleFunc(func(t time.Time) time.Time { return t })).Next(now).After(now))
	}
}
