package shards

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Event is what a member reports of itself; see [OnEvent].
type Event struct {
	Kind  string
	Key   string        // that it is about, or "" if it is about the member
	Err   error         // what is wrong
	Count int           // attempts that have failed, one after the other
	Again time.Duration // until the next attempt; 0 if something must change first
}

// tell tells the client's log and observers, and the function of [OnEvent].
func (s *Shards) tell(e Event) {
	what := e.Kind
	if e.Key != "" {
		what += fmt.Sprintf(" %q", e.Key)
	}
	if e.Again > 0 {
		what += fmt.Sprintf(", again in %v", e.Again)
	}
	kind := event.Failed
	if e.Kind == PlanIsNewer || e.Kind == ListIsNewer {
		kind = event.Differs // others are ahead: nothing has failed
	}
	recipe.Report(s.client, slog.LevelWarn, event.Event{Kind: kind, Path: s.path, Err: fmt.Errorf("%s: %w", what, e.Err)})
	if s.onEvent != nil {
		s.onEvent(e)
	}
}

// The kinds of an [Event].
const (
	KeyFailed       = "key failed"         // its function returned an error, panicked or exited; it is called again
	KeyWaits        = "key waits"          // it cannot be had, or asked for, now; that is tried again
	KeyGivenUp      = "key given up"       // its function has not returned in time, and runs on
	PlanIsNoPlan    = "plan is unreadable" // what the member owns stays owned; the planner writes the plan anew
	PlanIsNewer     = "plan is newer"      // a newer version of this module wrote it; what the member owns stays owned
	ListIsMissing   = "list is missing"    // there is no plan, and the member knows no list of keys; it waits for one
	ListIsNewer     = "list is newer"      // than the member's own; it follows the newer one
	MemberIsDelayed = "member is delayed"  // the servers refused something; it is tried again
)
