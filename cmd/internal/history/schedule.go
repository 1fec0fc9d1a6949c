package history

import (
	"slices"
	"time"
)

// Schedule is what a look has shown of a schedule.
type Schedule struct {
	Through time.Time // the newest slot that was chosen or left out
	Chosen  bool      // it was chosen
	LeftOut int       // slots, so far
}

// Skip says how many slots of a schedule were left out after After and before
// Until, or at it.
type Skip struct {
	Path         string
	After, Until time.Time
	Slots        int
	AtUntil      bool // the last of them is Until
}

// skip notes the slots that were left out since the look before.
func (h *History) skip(path string, t *track, now *Schedule) {
	was := t.schedule
	t.schedule = now
	if was == nil || now == nil || now.LeftOut <= was.LeftOut || !now.Through.After(was.Through) {
		return // there is nothing to compare with, or it began anew
	}
	h.skips = append(h.skips, Skip{path, was.Through, now.Through, now.LeftOut - was.LeftOut, !now.Chosen})
}

// forgetSkips drops what is too old, or too much.
func (h *History) forgetSkips(old time.Time) {
	tooMany := max(0, len(h.skips)-h.limits.Intervals)
	h.skips = slices.DeleteFunc(slices.Delete(h.skips, 0, tooMany), func(s Skip) bool { return s.Until.Before(old) })
}

// Skips are the slots that were left out between two looks.
func (h *History) Skips() []Skip { return h.skips }
