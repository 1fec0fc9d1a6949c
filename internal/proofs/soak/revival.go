package soak

import (
	"context"
	"time"
)

// revived is how long after the last fault a client must be granted something
// at a place, where one connected client is enough for that: the sessions of
// clients that are gone end within T, and a hold that lasts is released within
// its time.
func revived(p place) (limit time.Duration, sure bool) {
	switch p.name {
	case "meeting", "gate": // need all members, or the gate's keeper
		return 0, false
	}
	return T + 2*time.Second + p.hold[1], true
}

// judgeRevival reports places whose first grant came too late. The delay of
// timers is allowed for.
func (r *run) judgeRevival(first map[string]time.Duration, lag time.Duration) {
	for _, p := range places {
		limit, sure := revived(p)
		took, granted := first[p.name]
		switch {
		case !sure:
		case !granted:
			r.tally.problem("%s: nothing was granted for %v after the last fault", p.name, stuckAfter)
		case took > limit+lag:
			r.tally.problem("%s: nothing was granted for %v after the last fault; timers were late by %v", p.name, took, lag)
		}
	}
}

// stuck lists the workers that are granted nothing in time after the faults,
// and returns how long the first grant took at each place.
func (r *run) stuck(over time.Time) (names []string, first map[string]time.Duration) {
	first = map[string]time.Duration{}
	all := r.pulse.workers(r.clients()...)
	await(context.Background(), stuckAfter, func() bool {
		names = nil
		for _, who := range all {
			if !r.pulse.since(who, over) {
				names = append(names, who)
			}
		}
		for _, p := range places {
			if _, known := first[p.name]; !known && r.pulse.since(r.w.Path(p.name), over) {
				first[p.name] = time.Since(over)
			}
		}
		return len(names) == 0 && len(first) == len(places)
	})
	return names, first
}

// clients lists the names of all clients.
func (r *run) clients() (names []string) {
	for _, m := range r.fleet {
		names = append(names, m.Name)
	}
	for _, k := range r.children {
		names = append(names, k.name)
	}
	return names
}
