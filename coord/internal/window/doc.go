// Package window computes until when a session can be trusted: until then no
// server can have given it up.
//
// # Facts
//
// They are read off ZooKeeper's sources, at 3.8 and at the master branch of
// July 2026, and measured.
//
//  1. Only the leader gives sessions up: T after it last heard of one, rounded
//     up to the next tick (SessionTrackerImpl, ExpiryQueue).
//  2. A follower that is cut off from its leader goes on answering pings and
//     reads for seconds, and a superseded leader even acknowledges a sync. Only
//     a write is acknowledged by a quorum.
//  3. A follower notes which sessions it heard from
//     (LearnerSessionTracker.touchTable), and hands the table over with its
//     answer to the leader's next ping (Learner.ping; LearnerHandler, case
//     Leader.PING). A write that it forwards does not touch the session at the
//     leader (Leader.REQUEST goes straight to PrepRequestProcessor).
//  4. The leader pings every half tick (Leader.lead). Pings and commits to one
//     follower go through one queue and one stream; answers to pings and
//     forwarded writes share the stream back. A follower answers a ping before
//     it reads the next packet.
//  5. A follower that leaves its leader closes its clients' connections
//     (Learner.shutdown). So requests answered on one connection concern one
//     leader.
//  6. A new leader gives every session T anew, once a quorum follows it. A
//     write that the former leader acknowledged came before: the two quorums
//     have a server in common.
//
// # The rule
//
// Let a write w1 be acknowledged, and then a write w2 that was sent after the
// acknowledgement came. The follower has received every ping that the leader
// sent before it committed w1, and has written its answers before it read the
// commit. w2 was forwarded behind these answers, and it is committed, so the
// leader has read them (4). The last of these pings was sent at most one ping
// interval before w1. So a request whose answer came at least that long before
// w1 was sent was in the follower's table by then, and was reported: the leader
// heard of the session at or after the time at which the request was sent, and
// by (6) so did, in effect, each later leader. The window ends T after the
// newest such request was sent, less the margins [Skew] and [Reaction].
//
// Two shortcuts would be unsound. To compare the time at which the request was
// sent with w1: a connection that stalls delivers late what was sent early. To
// rely on one write: a silent stream to the follower can deliver its
// acknowledgement with a backlog, while the answer to the ping is lost with the
// stream back.
//
// The handshake that creates a session is a write. The handshake of a reconnect
// is passed to the leader (Leader.REVALIDATE) and touches the session there: it
// needs no report, and one write acknowledged on its connection proves that a
// quorum followed that leader afterwards. It is newer than every answer of the
// connections before, so they need no rule of their own.
//
// What a server answers by itself shows nothing: the answer to a credential
// (ZooKeeperServer.processPacket gives it before the session is touched), and a
// write refused with a zxid of 0 (zookeeper.enableEagerACLCheck).
//
// # Not covered
//
// The fencing token is for these:
//
//   - Pauses that no clock of the machine sees: a virtual machine that is
//     restored or migrated.
//   - Clocks slewed beyond 2 % (chrony's limit is 8.3 % unless configured).
//   - A leader whose pings come later than [Lag] allows, while the stream back
//     is lost as well.
//   - A touch that a follower's thread was about to note in a table at the
//     instant at which the table was handed over: the method
//     LearnerSessionTracker.snapshot replaces it without a lock.
//   - Clients of an observer that follows an ObserverMaster
//     (observerMasterPort): their sessions are reported over two hops, and two
//     writes prove only the first.
package window
