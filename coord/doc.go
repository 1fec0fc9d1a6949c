// Package coord holds the primitives of coordination on Apache ZooKeeper, from
// which the recipes beside it are made, and from which you can make your own.
//
// # What
//
// A [Client] keeps a session with the ensemble. A claim is an ephemeral node of
// its own, made by [Client.Join]; claims in one directory stand in a [Line], in
// the order of their creation. A [Rule] says, for a line and a place in it,
// whether the claim's turn has come and whom to wait for. [Claim.Turn] waits
// for the turn, and a granted claim is a [Hold]:
//
//	Join   create <dir>/_c_<guid>-<kind>-, ephemeral and sequential
//	Line   the directory's contenders, sorted by creation
//	Rule   func(line, self) (whom to wait for, granted), all a recipe supplies
//	Turn   granted, or watch those and the own node, and look again
//	Hold   Done, Err, Context, Token, Txn, Revoked, Release
//
// [Client.Acquire] and [Client.TryAcquire] do all of it. [First] and [Alone] are
// the usual rules, [Do] runs a function inside of any acquire, and [Check],
// [Configure] and [Client.Failure] are what constructors and errors of a recipe
// are made of.
//
// # Guarantees
//
//   - A hold ends ([Hold.Done]) before any server can have given its session
//     up, and so before anybody else can be granted the same turn. This needs
//     clocks that advance at nearly the same speed (within 2 %), and a process
//     that runs: see below.
//   - [Hold.Err] is right at the first instruction after a pause.
//   - Tokens grow from holder to holder, ensemble-wide.
//   - What [Hold.Txn] writes was written while the hold's node existed.
//   - Nothing is stranded: a node whose creation or deletion failed half-way is
//     found and deleted as soon as a server answers, and at the latest when the
//     session ends. The one exception, a node that the ACL forbids to delete,
//     is reported.
//   - Every call ends with its context, also when no server answers.
//   - A create whose reply was lost is found again by its GUID. Where a server
//     carries it out after it was repeated, or after its caller had left, which
//     servers do that were cut off, that node is deleted as soon as the session
//     is connected again; until then it is a contender like any other.
//
// # Not guaranteed
//
//   - A process that is paused (stopped, swapped, suspended) beyond the window
//     cannot know it until it runs again; in the meantime another may hold, and
//     what the paused one had sent may still arrive. No lock service can
//     prevent that. Give the [Hold.Token] to the resource, and let it refuse
//     smaller ones; or write by [Hold.Txn].
//   - A client of another dialect that joins a directory after a claim was
//     granted cannot be stopped; it is reported ([ClaimForeign]).
//   - What a holder reads after a reconnect may be older than its grant: a server
//     that lags behind answers, and does not know yet what the last holder wrote.
//     Read by [Client.Fresh], or write by [Hold.Txn] with the version that was
//     read.
//   - Fairness is the order of creation at the server, not of the calls.
//   - What ended with [ErrUnconfirmed], or was repeated over a lost connection,
//     may be carried out later, even after later requests of the session: a
//     follower that was cut off from its leader passes on what it held, and if
//     the client has tried to return to it, the leader takes that for the
//     session's own (measured with 3.8.0 and 3.9.6: docs/testing.md). Claims,
//     holds, [ExactlyOnce] and the recipes allow for that, unless they say
//     otherwise. [Client.Set], [Client.Delete] and [Client.Txn] do as their
//     versions and checks say: name them.
//
// # When the session or connection fails
//
// The client connects again by itself, to any of its servers, and opens a new
// session when the old one is over. Claims and holds stay with the session they
// were born in. While the connection is down, a hold lasts until the trust
// window ends: T after the send time of the newest request that was answered at
// least half a server tick before an acknowledged write was sent, less 2 % of T
// (T is the session time-out; a follower tells its leader of live sessions only
// every half tick, and only a write is acknowledged by a quorum). While there
// is any claim, the client writes a little more often than every T/8 for that
// reason. So a hold survives an outage of 0.4 T that begins at any moment, or of
// 0.6 T when the tick is known ([WithTick]). With [LoseAtDisconnect] it ends at
// once. A waiting claim waits on, and joins again, at the end of the line, if
// its session is over.
//
// # Znodes
//
// Directories are containers where the server has them, which it removes some
// time after their last child went. Claims are ephemeral; their data name the
// owner, as "identity host pid". The shape of the names is the [Dialect]'s.
//
// # Cost
//
// Join: create and list, which travel together, one round trip. A turn that
// comes at once costs nothing more; a hold that lasts longer than 20 ms one
// read of the own node, which leaves the watch. A waiter reads the own node and
// those its rule names, in one round trip; nobody else is woken when they go.
// Release: one delete. Session: a ping every T/3, and while there are claims
// one empty write every T/8 or so, however many claims there are. So an
// uncontended acquire and release are 3 requests in 2 round trips. For 10 T after
// a create whose reply was lost and that was not found, the session goes on
// writing, and writes and lists the directory after each reconnect.
package coord
