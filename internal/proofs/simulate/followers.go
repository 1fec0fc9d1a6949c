package simulate

import (
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/zkembed"
)

func lag(d *driver) (time.Duration, func() int) {
	ids := d.some()
	f, before := d.srv.AddFollower(d.part(d.r, 0.002, 0.4), ids...), d.reads(ids)
	return d.part(d.r, 0.5, 4), func() int {
		f.Stop()
		if d.reads(ids) <= before { // less, when one of the sessions has ended
			return 0
		}
		return 1
	}
}

// reads counts the reads of some sessions; nil stands for all.
func (d *driver) reads(ids []int64) (n int) {
	counts := []zkembed.Counts{d.srv.Counts()}
	if ids != nil {
		counts = nil
		for _, id := range ids {
			counts = append(counts, d.srv.SessionCounts(id))
		}
	}
	for _, c := range counts {
		n += c[zkembed.OpGetData] + c[zkembed.OpGetChildren] + c[zkembed.OpGetChildren2] + c[zkembed.OpExists]
	}
	return n
}

// isolate puts sessions on a follower and cuts that off from its leader.
func isolate(d *driver) (time.Duration, func() int) {
	ids := d.some()
	if ids == nil {
		return nothing()
	}
	f := d.srv.AddFollower(d.part(d.r, 0, 0.1), ids...)
	lasts, before := d.part(d.r, 1.2, 2.2), d.part(d.r, 0, 0.3)
	isolating := time.AfterFunc(before, f.Isolate)
	begun := time.Now()
	return lasts + before, func() int {
		isolating.Stop()
		f.Rejoin()
		f.Stop()
		if time.Since(begun)-before < d.timeout {
			return 0
		}
		return 1
	}
}

// silent puts sessions on a follower, and silences one direction of its link to
// the leader for less or more than T.
func silent(way zkembed.Direction) func(d *driver) (time.Duration, func() int) {
	return func(d *driver) (time.Duration, func() int) {
		ids := d.some()
		if ids == nil {
			return nothing()
		}
		f := d.srv.AddFollower(d.part(d.r, 0, 0.02), ids...)
		lasts, before := d.outage(), d.part(d.r, 0, 0.3)
		d.running.Go(func() {
			pause(before, d.calm)
			f.Silence(way)
		})
		return before + lasts, func() int {
			f.Rejoin()
			f.Stop()
			return min(1, f.Link().Held)
		}
	}
}

// breakage is the direction of a link that falls silent, and the one that is
// cut before or when the silence ends.
type breakage struct{ silent, cut zkembed.Direction }

var breakages = []breakage{
	{zkembed.ToFollower, zkembed.ToLeader},
	{zkembed.ToFollower, zkembed.Both},
	{zkembed.ToLeader, zkembed.ToFollower},
	{zkembed.Both, zkembed.ToLeader},
	{0, zkembed.ToLeader},
}

// broken puts sessions on a follower whose link is cut after a silence. The
// leader may never hear what the follower acknowledges last. For some time the
// follower does not come back, as one that looks for a leader.
func broken(d *driver) (time.Duration, func() int) {
	ids := d.some()
	for _, n := range d.srv.Nodes() {
		if n.Stat.EphemeralOwner != 0 && strings.HasPrefix(n.Path, "/seat/") {
			ids = []int64{n.Stat.EphemeralOwner} // a holder's session
		}
	}
	if ids == nil {
		return nothing()
	}
	f := d.srv.AddFollower(d.part(d.r, 0, 0.02), ids...)
	how := breakages[d.r.IntN(len(breakages))]
	before, quiet, away := d.part(d.r, 0, 0.3), d.part(d.r, 0.1, 0.48), d.part(d.r, 0, 1.8)
	if chance(d.r, 0.5) { // without other faults at the same time
		how, before, quiet, away = breakages[0], 0, d.part(d.r, 0.3, 0.48), d.part(d.r, 0.9, 1.2)
		d.pause = quiet + away
	}
	cut := quiet
	if chance(d.r, 0.7) {
		cut = time.Duration((0.6 + 0.4*d.r.Float64()) * float64(quiet))
	}
	d.running.Go(func() {
		pause(before, d.calm)
		f.Silence(how.silent)
		pause(cut, d.calm)
		f.Cut(how.cut)
		pause(quiet-cut, d.calm)
		f.Silence(0)
	})
	return before + quiet + away, func() int {
		f.Rejoin()
		f.Stop()
		return min(1, f.Link().Lost)
	}
}
