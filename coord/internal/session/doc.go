// Package session owns the connection to ZooKeeper. Connecting, handshakes and
// pings are left to the client library, whose errors, ACLs, flags and event
// types are used everywhere.
//
//   - A [Keeper] keeps one usable [Session] at a time and replaces it when it
//     is over. One Session is one connection object of the library and one
//     ZooKeeper session: a request begun in session A is never executed in
//     session B.
//   - Every request goes past the client library, through package wire.
//   - The trust window ([Session.Deadline]) is the time until which no server
//     can have given the session up. Only acknowledged writes move it.
//   - Watches are shared: one per path, however many goroutines wait. A lost
//     connection fires them all, and no wait depends on their being re-sent.
//
// No call outlives its context. Work that must go on after its caller has left
// (finding out the outcome of a create) runs in goroutines that Close joins.
package session
