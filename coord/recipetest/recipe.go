package recipetest

import (
	"context"
	"testing"

	"github.com/zkcoord/zkcoord/coord"
)

// Recipe is a recipe: what a client makes of a path, and its calls. R may have
// more than the recipe's own object, such as the hold that a call ends.
type Recipe[R any] struct {
	// New makes R, without a request. [coord.ErrInvalid] refuses a path or a
	// client.
	New func(c *coord.Client, path string) (R, error)
	// Refused are calls, by name, that cannot be right: [coord.ErrInvalid]
	// refuses them before a request.
	Refused map[string]func(ctx context.Context, r R) error
	// Calls are all calls that ask the servers.
	Calls []Call[R]
}

// Call is a call of a recipe.
type Call[R any] struct {
	Name string
	// Do makes the call. It may go on to what the call leads to, if that asks
	// nothing of the servers.
	Do func(ctx context.Context, r R) error
	// Ready brings about what Do needs, so that Do need not wait: by the same
	// client, before anything goes wrong. What only the first use of a recipe
	// costs can be done here as well.
	Ready func(ctx context.Context, r R) error
	// Done fails, by another client, if what Do does has not been done, or has
	// been done twice.
	Done func(ctx context.Context, other R) error
	// Requests and RoundTrips are what Do costs after Ready.
	Requests, RoundTrips int

	// Op is what the call's errors name, before the path; below it Node, if it
	// is about one node. Without Op both may be anything.
	Op, Node string
	// Once: the call is carried out once at most, and fails with
	// [coord.ErrUnconfirmed] when its session ends before the reply, as
	// [recipe.Transactor] does. Unconfirmed: it also fails so when the reply is
	// lost, as [coord.Client.Txn] does.
	Once, Unconfirmed bool
	// Holds: the call is about a hold, which ends with the session: it may fail
	// with [coord.ErrLost].
	Holds bool
	// Ends: the call gives something up, and does so also when its context has
	// ended or its client is closed; it need not fail then.
	Ends bool

	// Block makes Do wait, by another client, in place of Ready; Unblock ends
	// that. Without Unblock the other client is closed. A call that has neither
	// never waits for others.
	Block, Unblock func(ctx context.Context, other R) error
	// Waits: there is no Ready with which Do need not wait. Without Block and
	// Unblock it ends with its context only.
	Waits bool
}

// Run tests a recipe.
func Run[R any](t *testing.T, r Recipe[R]) {
	t.Helper()
	t.Run("refused", func(t *testing.T) { run(t, r, refused) })
	for _, call := range r.Calls {
		t.Run(call.Name, func(t *testing.T) {
			for _, condition := range conditions(call) {
				t.Run(condition.name, func(t *testing.T) {
					run(t, r, func(w *world[R]) { condition.test(w, call) })
				})
			}
		})
	}
}
