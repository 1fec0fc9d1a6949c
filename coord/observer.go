package coord

import (
	"fmt"
	"time"
)

// EventKind says what an [Event] tells.
type EventKind int

// The kinds of events.
const (
	SessionUp      EventKind = iota + 1 // connected with a session
	SessionDown                         // connection lost, session perhaps alive; not when that ends it
	SessionOver                         // session over; unless the client is closed, a new one is being opened
	ClaimJoined                         // a claim's node was created
	ClaimGranted                        // its turn came; Took is the wait
	ClaimLost                           // a hold ended before its release; Took is how long it lasted
	ClaimReleased                       // a hold was released; Took is how long it lasted
	ClaimLeft                           // a claim gave up waiting; Took is how long it waited
	ClaimRevoked                        // somebody asked for the hold
	ClaimForeign                        // a contender of another dialect or recipe came after the own one
	ClaimRecovered                      // a create whose reply was lost had taken effect
	StrayRemoved                        // a server that had been cut off made an own node long after it was asked to; it was deleted
	NodeStranded                        // an own node could not be deleted, or may not be looked for; it may stay until the session ends
)

var eventNames = map[EventKind]string{
	SessionUp: "session up", SessionDown: "session down", SessionOver: "session over",
	ClaimJoined: "joined", ClaimGranted: "granted", ClaimLost: "lost", ClaimReleased: "released",
	ClaimLeft: "left", ClaimRevoked: "revoked", ClaimForeign: "foreign contender",
	ClaimRecovered: "recovered", StrayRemoved: "stray removed", NodeStranded: "node stranded",
}

func (k EventKind) String() string {
	if name, ok := eventNames[k]; ok {
		return name
	}
	return fmt.Sprintf("event %d", int(k))
}

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
