package coord

import "time"

// EventKind says what an [Event] tells.
type EventKind string

// The kinds of events.
const (
	SessionUp      EventKind = "session up"        // connected with a session
	SessionDown    EventKind = "session down"      // connection lost, session perhaps alive; not when that ends it
	SessionOver    EventKind = "session over"      // session over; unless the client is closed, a new one is being opened
	ClaimJoined    EventKind = "joined"            // a claim's node was created
	ClaimGranted   EventKind = "granted"           // its turn came; Took is the wait
	ClaimLost      EventKind = "lost"              // a hold ended before its release; Took is how long it lasted
	ClaimReleased  EventKind = "released"          // a hold was released; Took is how long it lasted
	ClaimLeft      EventKind = "left"              // a claim gave up waiting; Took is how long it waited
	ClaimRevoked   EventKind = "revoked"           // the hold was asked for
	ClaimForeign   EventKind = "foreign contender" // a contender of another dialect or recipe came after the own one
	ClaimRecovered EventKind = "recovered"         // a create whose reply was lost had taken effect
	StrayRemoved   EventKind = "stray removed"     // a server that had been cut off made an own node late; it was deleted
	NodeStranded   EventKind = "node stranded"     // an own node could not be deleted, or may not be looked for; it may stay until the session ends
)

// Event is something an observer may want to count. Fields that do not apply
// are zero.
type Event struct {
	Kind    EventKind
	Session int64
	Path    string        // the claim's node, or the foreign one
	Token   int64         // of an exclusive hold
	Took    time.Duration // see the kinds
	Err     error
}
