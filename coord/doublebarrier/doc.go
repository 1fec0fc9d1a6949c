// Package doublebarrier lets n processes start a piece of work together and
// finish it together, round after round.
//
// # What
//
// A [Barrier] for n on a path is used in rounds. [Barrier.Enter] waits until n
// have come and returns to all of them: the round is open. [Member.Leave] waits
// until all of them have finished, or are gone, and returns to all of them with
// the same outcome: the round is over. [Barrier.Do] does both around a function
// and is the recommended way in:
//
//	b, err := doublebarrier.New(client, "/jobs/nightly", 8)
//	err = b.Do(ctx, func(ctx context.Context, m *doublebarrier.Member) error {
//		return work(ctx, m.Index(), m.Count())
//	})
//	// nil: all eight have done their part
//
// [Member.Index] numbers the members of a round from 0, for sharing out the
// work. The same barrier serves any number of rounds, of the same processes or
// of others.
//
// # Guarantees
//
//   - A round begins at one instant at which all its n members are there, and
//     has no others. Whoever has come first has the first claim to a place.
//   - Nobody leaves before every other member has called Leave or is gone.
//   - There is one outcome for a round: everybody whom Leave tells one is told
//     the same, however late it asks. It is nil if all have finished, and
//     otherwise names those that are missing.
//   - Rounds do not mix: the next does not begin before the last is over, or all
//     its members are gone; what a crashed round left behind lets nobody through.
//   - A member that dies at whatever moment stops nobody: before the round
//     begins its place is free for another, afterwards it is missing in the
//     outcome.
//   - An Enter that fails leaves nothing behind, and one that is late is told so
//     ([ErrLate]), or waits for a later round ([WaitForNextRound]).
//   - Every call ends with its context, also when no server answers.
//
// # Not guaranteed
//
//   - That all n begin to work: a member can die right after the round began,
//     and one whose context ends in that very moment is a member that gives up.
//     The others learn of it when they leave, not before. So it is with a node
//     that a server which had been cut off made late (see package coord): until
//     it is removed it counts as a member, also beside the one whose it is.
//   - That a missing member has done nothing: it may have finished and crashed
//     before that was seen, and one that is paused beyond its session time-out
//     may go on working after the round is over. Write results by [Member.Txn],
//     which nobody can do who is missing, or look at [Member.Done].
//   - After a crash, that the barrier is free at once: until the servers expire
//     the sessions of the dead, a newcomer is late.
//   - Clients of Curator's and Kazoo's double barriers cannot take part. They
//     have no rounds: a ready that is there lets their next member through, and
//     the first of them to finish, or to begin to leave, deletes it. Enter
//     refuses a path where such a ready is found ([coord.ErrForeign]).
//
// # When the session or connection fails
//
// A short outage is lived through. A member whose session ends while it waits to
// enter comes again, at the end of the line; afterwards it has lost its place:
// [Member.Done] is closed, Leave fails with [coord.ErrLost], and for the others
// it is missing. That includes a member that cannot reach the servers for as
// long as they might take to expire its session (see package coord).
//
// # Znodes
//
//	/jobs/nightly                                    container
//	/jobs/nightly/ready                              persistent: the round
//	/jobs/nightly/_c_<uuid>-member-0000000017        ephemeral: one for each process
//	/jobs/nightly/_c_<uuid>-member-0000000018
//
// ready is never deleted, but by [Barrier.Remove]. It holds one line of JSON,
// {"format":1,"size":2,"round":7,"first":17,"next":19,"open":true}, and while a
// round is open the names of its members, one per line, which are those with the
// sequence numbers from first up to but not including next. When the round is
// over, "missing" lists the indexes of those that are; "past" keeps the outcomes
// that somebody has yet to read. Every change is made for the version it was
// read in. A member's data name its owner; "done" in a second line says that it
// has finished. docs/design.md has the protocol and why it is right.
//
// # Cost
//
// For a member, whatever n is: Enter is a read, a create, and a read when the
// round begins (and one for the watch on the own node): 4 requests, one wake-up.
// Leave is 5 requests and 4 wake-ups: one write to say that it has finished, a
// look at the member before it, a read of the outcome, a delete, and once more
// the own node. The one who completes the round adds 3 requests, the first in it
// reads every other member once or twice. A round of n is at most 11n+4 requests
// and usually 10n.
// The death of a member in a round wakes the one after it. Who waits for a later
// round makes up to 6 requests per round that passes, and hears nothing else.
//
// ready is read by everybody when the round begins, with n names of 57 bytes:
// that is the limit of scale. [MaxMembers] is 4000; the path must be short then
// (116 bytes; New tells).
package doublebarrier
