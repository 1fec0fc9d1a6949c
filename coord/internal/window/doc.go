// Package window computes until when a session can be trusted: until then no
// server can have given it up.
//
// # Facts
//
// They are read off ZooKeeper's sources (Leader.lead, LearnerHandler,
// Learner.ping, LearnerSessionTracker, SessionTrackerImpl) and measured, see
// docs/design.md.
//
//   - The leader alone gives sessions up: T after it last heard of them.
//   - A follower answers reads and pings by itself, also when it is cut off.
//     It keeps a table of the sessions it heard from, and hands it over with
//     its answer to the leader's next ping.
//   - The leader pings every half tick. Pings and commits to a follower share
//     one ordered stream; answers to pings and the writes that the follower
//     forwards share the other.
//   - A write is acknowledged by a quorum; a read, a ping and a sync are not.
//     A later leader gives every session T anew, from a moment after the last
//     write that an earlier one acknowledged.
//   - A handshake that creates a session is a write. The handshake of a
//     reconnect is passed to the leader and touches the session there.
//
// # The rule
//
// Let a write w1 be acknowledged, and then a write w2 that was sent after the
// acknowledgement came. When w1's acknowledgement came, the follower had
// received every ping that the leader sent before w1's commit, and had written
// its answers. When w2 is committed, the leader has read them. So a request
// whose answer came before w1 was sent, by at least the longest time between
// two pings, was reported: the leader heard of the session after that request
// was sent. The window ends T after the newest such request was sent, less the
// margins [Skew] and [Reaction].
//
// The handshake of a reconnect needs no report; one write acknowledged on its
// connection proves that a quorum followed that leader afterwards. It is newer
// than every answer of the connections before, so they need no rule of their
// own.
//
// # Not covered
//
// Clients of an observer that follows an ObserverMaster
// (observerMasterPort): their sessions are reported over two hops, and two
// writes do not prove the second. A leader whose pings come later than [Lag]
// allows. Clocks that differ by more than 2 %, and pauses that no clock of the
// machine counts. The fencing token is for these.
package window
