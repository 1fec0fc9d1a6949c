package bench

import (
	"context"
	"sync"
	"time"
)

// barrier is rounds of a double barrier for t.each members (at least one) in
// each session, who all come at once, and leave at once when the last of them
// is in.
func barrier(ctx context.Context, open open, t task) (*job, error) {
	s, err := openAll(ctx, open, t)
	if err != nil {
		return nil, err
	}
	members := t.sessions * max(t.each, 1)
	enters, leaves := make([]call, members), make([]call, members)
	for i := range members {
		if enters[i], leaves[i], err = s.all[i%t.sessions].barrier(t.path+"/barrier", members); err != nil {
			s.close()
			return nil, err
		}
	}
	round := func() (enter, leave time.Duration) { return s.atOnce(enters), s.atOnce(leaves) }
	round() // makes the directories
	run := func() (figures, error) {
		var enter, leave []time.Duration
		begun := time.Now()
		for time.Since(begun) < t.during && s.failure() == nil {
			e, l := round()
			enter, leave = append(enter, e), append(leave, l)
		}
		return figures{
			"ops": float64(len(enter) * members), "seconds": time.Since(begun).Seconds(),
			"enter": median(enter), "leave": median(leave),
		}, s.failure()
	}
	return &job{run: run, close: s.close}, nil
}

// atOnce makes all calls at once and returns how long the last of them took.
func (s *sessions) atOnce(calls []call) time.Duration {
	var all sync.WaitGroup
	begun := time.Now()
	for _, call := range calls {
		all.Go(func() { s.note(call(s.ctx)) })
	}
	all.Wait()
	return time.Since(begun)
}
