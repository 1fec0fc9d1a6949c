// Package coord keeps a session with an Apache ZooKeeper ensemble and the holds
// in it: a lock, a leadership, a permit. The recipes that grant them are in the
// folders below.
//
// # What
//
// A [Client] keeps the session from [Open] to [Client.Close], and [Client.Info]
// describes it. A recipe, made of a client and a path, grants a [Hold]: Done,
// Err and Context say whether it lasts; Release ends it. A [Held] is one that
// others may only ask. [Client.Wait] waits for any other condition: a look
// reads nodes through a [View], and is called again when any of them has
// changed. [Client.Get], [Client.Txn] and the like read and write nodes. What
// fails matches one of the errors below (errors.Is). Package hold runs a
// function while a hold lasts, and has several holds count as one; package
// event names what [WithObserver] hears.
//
// # Guarantees
//
//   - A hold ends ([Hold.Done]) before any server can have given its session
//     up, and so before another can be granted the same turn. [Hold.Err] is
//     right at the first instruction after a pause.
//   - Tokens grow from holder to holder, ensemble-wide. [Hold.Txn] writes only
//     while the hold's node exists.
//   - Nothing is stranded: a node whose creation or deletion failed half-way is
//     found by its GUID, and deleted as soon as a server answers; so is one
//     that a server made late (until then it is a contender like any other). A
//     node that the ACL forbids to delete stays until the session ends, and is
//     reported.
//   - Every call ends with its context, also when no server answers.
//
// # Not guaranteed
//
//   - A process that is paused (stopped, swapped, suspended) beyond the window
//     cannot know it until it runs again; meanwhile another may hold, and
//     requests that the paused one had sent may still arrive. No lock service
//     can prevent that. Give the [Hold.Token] to the resource, and let it
//     refuse smaller ones; or write by [Hold.Txn].
//   - Trust rests on the clocks of client and leader running within 2 % of each
//     other, and on the client's clock noticing every suspend and pause (a
//     virtual machine's may not, when it is restored or migrated). A leader
//     whose pings come late by more than half a tick, or T/8, and observers
//     behind an ObserverMaster, are not allowed for. The token is for these,
//     too.
//   - A contender of another dialect, of a kind that does not take part, or of
//     an unknown recipe ([Unknown]) that comes after a claim was granted cannot
//     be stopped. It is reported ([event.Foreign]) within T/2 of the time at
//     which a client is connected that has held the line for that long; later
//     where hundreds share a line that is never still, or where one client
//     holds hundreds of lines.
//   - What a holder reads after a reconnect may be older than its grant: its
//     server may lag behind. Read by a [Client.Synced], or write by [Hold.Txn]
//     with the version that was read.
//   - Fairness is the order of creation at the server, not of the calls.
//   - A request that ended with [ErrUnconfirmed], or was repeated over a lost
//     connection, may be carried out later, even after later requests of the
//     session. Claims, holds, recipe.Transactor and the recipes allow for that,
//     unless they say otherwise. [Client.Set], [Client.Delete] and [Client.Txn]
//     are protected only by the versions and checks that you pass: pass them.
//
// # When the session or connection fails
//
// The client connects again by itself, to any of its servers, and opens a new
// session when the old one is over. Claims and holds stay with the session they
// were born in. While the connection is down, a hold lasts until the trust
// window ends, which is T (the session timeout), less a margin, after the
// newest request that the leader is proved to have heard of (docs/design.md).
// It survives an outage of T/3 that begins at any moment, or of T/2 when the
// tick is known and at most T/5 ([WithTick]), and round trips of up to T/8
// (T/5). With [LoseAtDisconnect] it ends immediately. A waiting claim waits on,
// and joins again, at the end of the line, if its session is over.
//
// # Znodes
//
// Directories are containers where the server has them, which it removes some
// time after their last child went. Claims are ephemeral; their data name the
// owner, as "identity host pid", and in a second line the holds that the claim
// was made under (Under of inspect.Contender). The shape of the names is the
// [Dialect]'s.
//
// # Cost
//
// An uncontended acquire and release are 3 requests in 2 round trips: create
// and list, which travel together, and delete; two empty writes, and one or two
// round trips, more if the session has written nothing for most of T, which is
// also what a grant costs after a long wait; and one read of our node for a
// hold or a wait that lasts longer than 20 ms (250 ms with 16 or more in line
// before it). A hold that lasts for T/3 lists its line once more, and again
// after a change there, at most every T/5; of those who share a line, the k-th
// at most every k T/5. A waiter reads the nodes that its rule names, in one
// round trip; no other claim is woken when they go. The session sends a ping
// every T/3 and, while it has holds, however many, an empty write every T/10 or
// so; while its claims only wait, none. For 10 T after a create whose reply was
// lost and that was not found, it goes on writing, and writes and lists the
// directory after each reconnect.
//
// Requests of more than 1 KiB wait while the link has as much to carry as it
// can in T/16. The first one of more than 64 KiB, and one after T without such,
// costs two reads of nothing, to see what the link bears.
//
// # For authors of recipes
//
// A claim is an ephemeral node; a directory's claims stand in a [Line], in the
// order of their creation. A [Spec] describes a claim. A [Rule] says, by those
// ahead of a claim, whether its turn has come and which of them to wait for;
// [First] is the usual one. A recipe supplies these two:
//
//	Join   create <dir>/_c_<guid>-<kind>-, ephemeral and sequential
//	Line   the directory's contenders, sorted by creation
//	Rule   func(ahead []Contender) (which to wait for, granted)
//	Turn   granted, or watch those, and look again when one of them goes
//
// recipe.Acquire and recipe.TryAcquire do that; recipe.Join joins a line in
// which nobody waits. A claim of a name ([NameSpec], recipe.AcquireName) stands
// in no line. recipe.EnsembleTime is the clock for what clients decide for each
// other. Package recipe has the rest that recipes share.
package coord
