// Package doublebarrier lets n processes start a piece of work together and
// finish it together, round after round.
//
// # What
//
// [Barrier.Enter] waits until n members have come and returns to all of them:
// the round is open. [Member.Leave] waits until all of them have finished or
// are gone and returns to all of them with the same outcome: the round is over.
// [Barrier.Do] does both around a function:
//
//	b, err := doublebarrier.New(client, "/jobs/nightly", 8)
//	err = b.Do(ctx, func(ctx context.Context, m *doublebarrier.Member) error {
//		return work(ctx, m.Index(), m.Count())
//	})
//	// nil: all eight have done their part
//
// [Member.Index] numbers the members of a round from 0, for sharing out the
// work. The next round can have the same members, or others. Members can bring
// data ([Barrier.EnterWith]) and results ([Member.Gather]): every member gets
// those of all. With [AtLeast], a round begins with fewer than n members after
// a last call.
//
// # Guarantees
//
//   - A round begins at one instant at which all its members are there, and it
//     gets no others later. Places are given in the order of arrival.
//   - No member leaves before every other has called Leave or is gone.
//   - A round has one outcome, the same for every member, however late it asks:
//     nil if all have finished, or else an error that names those missing. The
//     same is true of the results, which are written along with the outcome.
//   - Rounds do not mix: the next begins when the last is over, or all its
//     members are gone. The remains of a crashed round let no member through.
//   - A member that dies stops no other: before the round begins its place is
//     free, afterwards it is missing in the outcome.
//   - An Enter that fails leaves nothing behind. A late member gets an error
//     ([ErrLate]), or waits for a later round ([WaitForNextRound]).
//   - Every call ends with its context, also when no server answers.
//
// # Not guaranteed
//
//   - That all n begin to work: a member can die, or give up, right after the
//     round began. The others learn of it when they leave. A node made late,
//     through a server that had been cut off (see package coord), counts as a
//     member until it is removed.
//   - That a missing member has done nothing: it may have crashed after it
//     finished and before that was seen, or it may have been paused and go on
//     after the round is over. Write results by [Member.Txn], which fails for a
//     missing member.
//   - After a crash, that the barrier is free immediately: newcomers are late
//     until the servers expire the sessions of the dead.
//   - That clients of Curator's and Kazoo's double barriers can take part: they
//     have no rounds, and delete ready. A path with such a ready is refused
//     ([coord.ErrForeign]), and Enter fails if one of them writes ready while
//     it waits. A path with other contenders is refused as well, unless a
//     barrier was used there: then they are ignored.
//
// # When the session or connection fails
//
// A short outage does no harm. A member whose session ends before the round
// begins enters again, at the end of the line. A member whose session ends
// later has lost its place: [Member.Done] is closed, Leave fails with
// [coord.ErrLost], and it is missing in the outcome. The same happens to a
// member that cannot reach the servers for as long as they may take to expire
// its session.
//
// # Znodes
//
//	/jobs/nightly                                    container
//	/jobs/nightly/ready                              persistent: the round
//	/jobs/nightly/_c_<uuid>-member-0000000017        ephemeral: one for each member
//
// ready is a line of JSON,
// {"format":1,"size":2,"round":7,"first":17,"next":19,"open":true}, and while
// the round is open, a line for each member with its name. The members are the
// nodes with the numbers from first up to but not including next. "missing"
// lists the members missing in a round that is over, "reasons" says why, and
// "past" has earlier rounds whose outcome a member has yet to read. Only
// [Barrier.Remove] deletes ready. The data and the results of round 7 are in
// data-7 and results-7: a line of JSON with the lengths by index, then the
// bytes. reason-7-2 says why member 2 of that round gave up. They are deleted
// when a round begins after all members of round 7 have gone. A member's node
// names its owner. If the member has brought data, a line "data" and the data
// follow; once it has finished, a line "done" and its result. The recipe is
// more than a line and a rule: PROTOCOL.md has the protocol and why it is
// right.
//
// # Cost
//
// For each member, for any n: 3 or 4 requests and 1 wake-up to enter, 5
// requests and 4 wake-ups to leave, in five successive round trips each. The
// member that completes the round makes 2 requests more, and the first member
// reads each other one once or twice: at most 11n+3 requests in a round, 9n
// when all come and finish together. Up to n = 32, each member lists the others
// along with its create: a request more, and four round trips to enter. A death
// wakes the next member only. Where members are missing, the first in the round
// lists, and reads up to 16 reasons. Data and results cost each member a
// request, the data n-1 more and a round trip for the member that completes the
// round. A member that waits for a later round makes up to 6 requests for each
// round that passes, and is not woken otherwise.
//
// Every member reads ready when the round begins, with n names of 57 bytes,
// which limits n: [MaxMembers] is 4000, at a path of at most 116 bytes.
package doublebarrier
