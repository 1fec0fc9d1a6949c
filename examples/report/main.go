// Report: one replica at a time writes a file. One of them is paused in the
// middle, for so long that the next one writes; when it goes on, its own write
// is refused, because its token is older.
//
//	go run ./examples/report
package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/fence"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/examples/stage"
)

func main() {
	stage.Play(stage.Scene{Pause: "begins the report", Resume: "has written"}, replica)
}

func replica(ctx context.Context, r *stage.Replica) error {
	m, err := lock.New(r.Client, "/example/report", lock.MaxHold(time.Minute, 10*time.Second)) // for a writer that hangs
	if err != nil {
		return err
	}
	h, err := m.Acquire(ctx)
	if err != nil {
		return err
	}
	defer h.Abandon()
	r.Say("begins the report, with token %d", h.Token())
	draft := filepath.Join(r.Dir, r.Name)
	if err := os.WriteFile(draft, []byte("by "+r.Name), 0o600); err != nil {
		return err
	}
	time.Sleep(500 * time.Millisecond) // the work; a pause can come anywhere
	switch err := publish(ctx, h, draft, filepath.Join(r.Dir, "report")); {
	case errors.Is(err, fence.ErrStale):
		r.Say("is refused: %v", err)
		return nil
	case err != nil:
		return err
	}
	r.Say("has written the report")
	return h.Release(ctx)
}

// publish puts the draft in the report's place, unless a later holder has done
// so. The hold has ended after a pause, and a program that looks at h.Err knows
// it, but it can be paused again right after that.
func publish(ctx context.Context, h *coord.Hold, draft, report string) error {
	return fence.Rename(ctx, draft, report, h.Token())
}
