package coord

import (
	"context"
	"time"
)

// Held is a hold for users who may ask it, but not end it: a recipe that ends
// its holds by a protocol of its own hands them out as Held. A [*Hold] is one,
// and so is what embeds one, such as an election's term; see [Hold] for what
// the methods do.
type Held interface {
	// Done is closed when the hold has ended, for any reason.
	Done() <-chan struct{}
	// Err returns nil while the hold can be trusted, and then why it ended.
	Err() error
	// Context returns a context that ends when the hold or parent does.
	Context(parent context.Context) context.Context
	// Deadline returns the end of the trust window as known now.
	Deadline() time.Time
	// Token returns the fencing token; 0 if the hold is not exclusive.
	Token() int64
	// Node returns the path of the hold's node.
	Node() string
	// Session returns the id of the session the hold belongs to.
	Session() int64
	// Revoked is closed when a client has asked the holder to give up.
	Revoked() <-chan struct{}
	// Txn carries out all the operations or none, and only while the hold's
	// node exists.
	Txn(ctx context.Context, ops ...Op) ([]Result, error)

	hold() *Hold
}

var _ Held = (*Hold)(nil)

func (h *Hold) hold() *Hold { return h }
