// Package value is a value that clients share: they read it, change it, and
// follow its changes.
//
// # What
//
// A [Value] is the data of one node. [Value.Get] reads it, [Value.Change]
// replaces it with what a function computes from it, [Value.Set] replaces it,
// and [Value.TrySet] does so only if nobody has changed it since it was read.
// [Value.Observe] follows it. Nobody holds anything: for a configuration, a
// switch, a limit. Where the change takes longer than a moment, take a lock.
//
//	v, err := value.New(client, "/config/limits")
//	err = v.Change(ctx, func(now value.State) ([]byte, error) {
//		return raise(now.Data)
//	})
//
// # Guarantees
//
//   - A change is made of the value that it replaces: no change is lost.
//   - A change is carried out once, also when replies are lost: when Change,
//     Set or TrySet returns nil, it was, and when they fail with anything but
//     [coord.ErrUnconfirmed], it was not, nor will be.
//   - Observe shows every change that lasts, and never goes back in time.
//   - Nobody starves: a client that was outrun five times takes a turn, which
//     all clients of this module honour. Of ten clients, 0.5 to 60 ms away,
//     each has at least a tenth of its fair share of the changes. A Set waits
//     for nobody.
//   - Every call ends with its context. If others were faster until then, the
//     error says how often.
//
// # Not guaranteed
//
//   - What Get and Observe return is as new as the server that answers, which
//     may lag behind; Observe shows the latest state, not every state. Change's
//     function gets the value that it replaces, or the change is not made.
//   - Order among those who change it at the same time: one succeeds, and the
//     others try again, each time with a read and a write, and then one after
//     the other (recipe.Record). Some ten clients may do that at a time, not
//     thousands. Other programs honour no turn.
//   - A value fits into one packet, and a slow link carries it in a quarter of
//     the session timeout ([coord.ErrTooLarge]).
//   - A change that fails with coord.ErrUnconfirmed may have been made, or may
//     be made yet: ctx ended before the reply came, or the session did, at the
//     very moment.
//
// # When the session or connection fails
//
// Calls wait for the next connection, and find out what became of a change
// whose reply was lost. A change whose session is over cannot be found out
// (coord.ErrUnconfirmed).
//
// # Znodes
//
// The value is the data of the node at the path, as for Curator's SharedValue,
// with which it shares the path, and any other program's that writes by
// version; the dialect makes no difference:
//
//	/config/limits                  persistent; data: the value
//	/config/limits/turn-<n>-<text>  ephemeral, one for each client that takes a turn
//	/config/limits-guards/_c_<uuid> ephemeral, one for each change under way; idle ones are deleted
//
// [Value.Remove] deletes all of it.
//
// # Cost
//
// Get: one read. Set: a transaction, which is a change also if the value stays
// the same. A change: a read and a transaction, even if the value stays the
// same; no read in a process that observes the value. Both again whenever
// another client was faster, and seven requests with a turn. A change that is
// refused: two reads, and an empty write between them. A change that is a
// client's first of the value within the session timeout also makes a node in
// guards, which is deleted later. A change wakes all observers, which read the
// value.
package value
