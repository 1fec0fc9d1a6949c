// Package event names the events of a client of package coord, for its
// observers.
package event

import "time"

// The kinds of an [Event].
const (
	SessionUp       = "session up"       // connected with a session
	SessionDown     = "session down"     // connection lost, session perhaps alive; not when that ends it
	SessionOver     = "session over"     // Err says why; unless the client is closed, a new one is being opened
	SessionAttended = "session attended" // by an attendant; if Err is set, by none, or not any more
	Joined          = "joined"           // a claim's node was created, after Took
	Granted         = "granted"          // its turn came, Took after the call
	// Ended: a hold was released (Err is coord.ErrReleased) or lost
	// (coord.ErrLost), or a wait given up, after Took.
	Ended   = "ended"
	Revoked = "revoked" // it was asked to give up; see inspect.Revoke
	// Foreign: a contender that cannot be honoured (coord.Line) came after
	// ours, or is waited for.
	Foreign      = "foreign contender"
	Recovered    = "recovered"     // a create whose reply was lost had taken effect
	StrayRemoved = "stray removed" // a server that had been cut off made a node of ours late; it was deleted
	Differs      = "differs"       // another client uses a path in another way than this one; Err says how
	// ClockAhead: this client's clock is ahead of the ensemble's, which decides
	// for all; Err says by how much.
	ClockAhead = "clock ahead"
	MarkAhead  = "mark ahead" // a schedule's mark lies in the future; Err says how far, and what to do
	// Failed: a function that a recipe ran, a leader's health check, or what a
	// member of shards needs; Err says why.
	Failed = "failed"
	// NodeStranded: a node of ours could not be deleted, or may not be looked
	// for; it may stay until the session ends.
	NodeStranded = "node stranded"
)

// Event is something an observer (coord.WithObserver) may want to count. Fields
// that do not apply are zero.
type Event struct {
	Kind    string // one of those above
	Session int64
	Path    string // the claim's node, or the foreign one
	Recipe  string // the path of the recipe that the claim belongs to
	Token   int64  // of an exclusive hold
	Took    time.Duration
	Err     error
}
