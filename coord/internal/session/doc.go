// Package session owns the connection to ZooKeeper. It is the only place that
// imports the client library, and it exists because the guarantees of package
// coord need more than that library tells:
//
//   - A [Keeper] keeps one usable [Session] at a time and replaces it when it
//     is over. One Session is one client connection object is one ZooKeeper
//     session: a request begun in session A is never executed in session B.
//   - The session's requests, but for transactions and containers, go past the
//     client library ([Session.List], for one): it takes two goroutines, two
//     queues and reflection for each, and one packet for each write. What is
//     asked together travels together.
//   - Every byte passes through a wire (a wrapping net.Conn). It learns the
//     negotiated time-out and the send times of acknowledged requests,
//     bounds the handshake, gives up on a server that does not answer, and
//     never lets the client library see a write error.
//   - The trust window ([Session.Deadline]) is the time until which no server
//     can have given the session up. Only acknowledged writes move it.
//   - Watches are shared: one per path, however many goroutines wait. A lost
//     connection fires them all, so that no wait depends on their being
//     re-sent.
//
// No call outlives its context. Work that must go on after its caller has left
// (finding out what became of a create) runs in goroutines that Close joins.
package session
