// Package attend has what the library and its attendant share: the protocol
// that they speak over a Unix socket, the client's side of it, and how a
// session is closed by its id and password. The attendant itself is
// coord/attend.
//
// # Protocol
//
// Both sides send frames: a byte with the protocol's version (1), three bytes
// with the length of the body (big endian, at most 64 KiB), and the body, a
// JSON object. Fields that are not known are ignored.
//
// The client sends a [Message]: to attend a session, which takes the place of
// the connection's former one; to leave, after which the connection's end means
// nothing; or to check that the attendant is there. The attendant answers each
// message with an [Answer], in order. An answer with an error is the last: the
// attendant forgets the session and closes the connection.
//
// If the connection ends on the client's side while a session is attended, all
// processes that had it are gone: the kernel has closed it. So a client never
// closes the connection of a live session without having left: it waits for
// an attendant that does not answer, however long that takes.
package attend
