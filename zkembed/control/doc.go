// Package control makes a [zkembed.Server] of another process do what a test
// wants, over HTTP with JSON, in whatever language the test is:
// `zkcoord server --control` serves it. A test in Go and in the same process
// calls the server itself.
//
// # Routes
//
// All are below the URL that the command prints, whose path is the token:
//
//	POST   /faults                    a [Fault]; the answer is its [State]
//	GET    /faults                    all in force, with how often each struck
//	GET    /faults/1
//	DELETE /faults/1                  ends it
//	DELETE /faults                    ends all
//	GET    /sessions
//	DELETE /sessions/0x1              the session expires
//	DELETE /sessions/0x1/connection   the session's connection is cut
//	DELETE /connections               all connections are cut
//	GET    /requests                  numbers of requests by operation
//	GET    /watches
//	GET    /nodes?path_prefix=/a
//
// An answer comes when what was asked for is in force. A request that is
// refused changed nothing, and its answer has the reason as "error".
//
// # Who is let in
//
// Whoever has the token, by a loopback address or as localhost, and no page in
// a browser.
package control
