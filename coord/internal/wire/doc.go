// Package wire is ZooKeeper's protocol and one connection. It exists because
// the guarantees of package coord need more than the client library offers:
//
//   - A [Conn] is the net.Conn that the client library talks through. The
//     library chooses the server, connects, shakes hands and pings. All other
//     requests go past it ([Conn.Ask]): for each request, the library takes two
//     goroutines, two queues, reflection and a write. Here, requests made
//     together travel together.
//   - It learns the negotiated timeout and the send times of acknowledged
//     requests, bounds the handshake, gives up on a server that does not
//     answer, and never lets the library see a write error.
//   - A request is answered once, by its complete reply or by [ErrConnection],
//     no matter what a server sends.
//   - [Part] lets the library close immediately when the session is over.
package wire
