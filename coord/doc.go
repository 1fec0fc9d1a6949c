// Package coord holds the primitives of coordination on Apache ZooKeeper, from
// which the recipes beside it are made, and from which you can make your own.
//
// # What
//
// A [Client] keeps a session with the ensemble. A claim is an ephemeral node of
// its own, made by [Client.Join]; claims in one directory stand in a [Line], in
// the order of their creation. A [Rule] says, by those ahead of a claim,
// whether its turn has come and which of them to wait for. [Claim.Turn] waits
// for the turn, and a granted claim is a [Hold]:
//
//	Join   create <dir>/_c_<guid>-<kind>-, ephemeral and sequential
//	Line   the directory's contenders, sorted by creation
//	Rule   func(ahead) (which to wait for, granted), all a recipe supplies
//	Turn   granted, or watch those and the own node, and look again
//	Hold   Done, Err, Context, Token, Txn, Revoked, Release
//
// What is not a turn is waited for by [Client.Wait]: a look reads nodes through
// a [View], and is called again when any of them has changed.
//
// [Client.Acquire] and [Client.TryAcquire] do all of a turn. [First] is the usual
// rule. A claim of a name ([Client.AcquireName], [Client.JoinName]) stands in no
// line and needs none. [Do] runs a function inside of any acquire, and [Check],
// [Configure] and [Client.Failure] are what constructors and errors of a recipe
// are made of.
//
// # Guarantees
//
//   - A hold ends ([Hold.Done]) before any server can have given its session
//     up, and so before another can be granted the same turn. This needs
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
//   - A create whose reply was lost is found again by its GUID. A late create
//     (a server that was cut off carries it out after it was repeated, or after
//     its caller had left) leaves a node that is deleted as soon as the session
//     is connected again; until then it is a contender like any other.
//
// # Not guaranteed
//
//   - A process that is paused (stopped, swapped, suspended) beyond the window
//     cannot know it until it runs again; in the meantime another may hold, and
//     requests that the paused one had sent may still arrive. No lock service
//     can prevent that. Give the [Hold.Token] to the resource, and let it
//     refuse smaller ones; or write by [Hold.Txn].
//   - Trust rests on clocks of client and leader that differ by less than 2 %
//     in speed (chrony slews by up to 8.3 % unless configured otherwise), that
//     run on while the machine is suspended (on Linux: CLOCK_BOOTTIME;
//     elsewhere what the wall clock shows counts), and that see every pause:
//     the clocks of a virtual machine that is restored or migrated may not. A
//     leader whose pings come late by more than half a tick, or T/8, and
//     clients of observers behind an ObserverMaster, are not allowed for
//     either. The token is for these.
//   - A client of another dialect that joins a directory after a claim was
//     granted cannot be stopped; it is reported ([ClaimForeign]).
//   - What a holder reads after a reconnect may be older than its grant: a
//     server that lags behind answers, and does not know yet what the last
//     holder wrote. Read by a [Client.Fresh], or write by [Hold.Txn] with the
//     version that was read.
//   - Fairness is the order of creation at the server, not of the calls.
//   - A request that ended with [ErrUnconfirmed], or was repeated over a lost
//     connection, may be carried out later, even after later requests of the
//     session: a follower that was cut off from its leader passes on the
//     requests it held, and if the client has tried to return to it, the leader
//     accepts them (measured with 3.8.0 and 3.9.6: docs/testing.md). Claims,
//     holds, [ExactlyOnce] and the recipes allow for that, unless they say
//     otherwise. [Client.Set], [Client.Delete] and [Client.Txn] do as their
//     versions and checks say: name them.
//
// # When the session or connection fails
//
// The client connects again by itself, to any of its servers, and opens a new
// session when the old one is over. Claims and holds stay with the session they
// were born in. While the connection is down, a hold lasts until the trust
// window ends: T after the newest request of which two writes, one after the
// other, prove that the leader heard of it, less 2 % of T for clocks that run
// at different speeds and 2 % for acting on the end (T is the session time-out;
// docs/design.md has the proof). While there is any claim, the client writes
// every T/10 for that reason, T/8 at most. So a hold survives an outage of T/3
// that begins at any moment, or of T/2 when the tick is known and at most T/5
// ([WithTick]), and round trips of up to T/8 (T/5). With [LoseAtDisconnect] it
// ends at once. A waiting claim waits on, and joins again, at the end of the
// line, if its session is over.
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
// comes at once costs nothing more, or one empty write and its round trip if
// the client had no claim for the last T/2 or so; a hold that lasts longer than
// 20 ms one read of the own node, which leaves the watch. A waiter reads the
// own node and those its rule names, in one round trip; no other claim is woken
// when they go. Release: one delete. Session: a ping every T/3, and while there
// are claims one empty write every T/10 or so, however many claims there are.
// So an uncontended acquire and release are 3 requests in 2 round trips. For 10
// T after a create whose reply was lost and that was not found, the session
// goes on writing, and writes and lists the directory after each reconnect.
package coord
