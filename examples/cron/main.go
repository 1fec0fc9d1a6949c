// Cron: three replicas have the same schedule, and each slot is run by one of
// them. The first one is killed in the middle of a slot, which another runs,
// and after it the slots that came due meanwhile.
//
//	go run ./examples/cron
package main

import (
	"context"
	"time"

	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/examples/stage"
)

func main() {
	stage.Play(stage.Scene{Kill: "runs", End: "has run", Times: 3}, replica)
}

// everyTwoSeconds is a schedule. What cron.ParseStandard of
// github.com/robfig/cron/v3 makes of "30 4 * * *" is one, too.
type everyTwoSeconds struct{}

func (everyTwoSeconds) Next(t time.Time) time.Time {
	return t.Truncate(2 * time.Second).Add(2 * time.Second)
}

func replica(ctx context.Context, r *stage.Replica) error {
	// Without CatchUp, only the last of the slots that came due while nobody
	// ran them would be run late, and the others left out.
	c, err := cron.New(r.Client, "/example/cron", everyTwoSeconds{}, cron.CatchUp(100, 0),
		cron.MaxHold(10*time.Minute, 30*time.Second),
		cron.StopGrace(30*time.Second)) // a slot that hangs blocks the next ones
	if err != nil {
		return err
	}
	return c.Run(ctx, func(_ context.Context, s *cron.Slot) ([]byte, error) {
		r.Say("runs the slot of %s, attempt %d", s.At.Format(time.TimeOnly), s.Attempt)
		time.Sleep(100 * time.Millisecond) // the work
		r.Say("has run the slot of %s", s.At.Format(time.TimeOnly))
		return nil, nil
	})
}
