package coord

import "time"

// The kinds of an [Event].
const (
	SessionUp      = "session up"        // connected with a session
	SessionDown    = "session down"      // connection lost, session perhaps alive; not when that ends it
	SessionOver    = "session over"      // Err tells why; unless the client is closed, a new one is being opened
	ClaimJoined    = "joined"            // a claim's node was created, after Took
	ClaimGranted   = "granted"           // its turn came, Took after the call
	ClaimEnded     = "ended"             // a hold was released (Err is [ErrReleased]) or lost ([ErrLost]), or a wait given up, after Took
	ClaimRevoked   = "revoked"           // it was asked to give up; see [Client.Revoke]
	ClaimForeign   = "foreign contender" // a contender of another dialect or recipe came after the own one
	ClaimRecovered = "recovered"         // a create whose reply was lost had taken effect
	StrayRemoved   = "stray removed"     // a server that had been cut off made an own node late; it was deleted
	NodeStranded   = "node stranded"     // an own node could not be deleted, or may not be looked for; it may stay until the session ends
)

// Event is something an observer may want to count. Fields that do not apply
// are zero.
type Event struct {
	Kind    string // one of those above
	Session int64
	Path    string        // the claim's node, or the foreign one
	Token   int64         // of an exclusive hold
	Took    time.Duration
	Err     error
}

// emit tells the observer what became of the claim, and how long it took.
func (cl *Claim) emit(kind string, since time.Time, err error) {
	if cl.client.opts.observe == nil {
		return
	}
	e := Event{Kind: kind, Session: cl.sess.ID(), Path: cl.Node(), Took: time.Since(since), Err: err}
	if cl.spec.Exclusive {
		e.Token = cl.node.Czxid()
	}
	cl.client.emit(e)
}
