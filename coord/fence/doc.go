// Package fence makes a resource refuse the writes of former holders.
//
// # What
//
// A holder that is paused beyond its trust window learns of its loss when it
// wakes, but a write that it had begun may arrive later, while another holds.
// No lock service can prevent that; the resource can. The fencing token of an
// exclusive hold (coord.Hold.Token) grows from holder to holder. A fence
// remembers the newest token that it has seen for a name, and refuses older
// ones with [ErrStale]. A name identifies the resource: a row, a file, a path.
//
//	Database     SQL.Guard, in the transaction that writes
//	HTTP server  NewHandler, in front of the handlers that write
//	HTTP client  NewTransport, which sends the token of a hold
//	File         Rename, into place under the file's lock
//	Your own     Store; Check says whether it refuses
//
// All tokens of a name must come from one lock, on one ensemble. The tokens of
// two locks cannot be compared, nor can those of a lock before and after its
// ensemble was set up anew: the new tokens begin small and are refused, until
// the name is forgotten ([Store.Forget]).
//
// The package links the standard library only, so a server that checks tokens
// needs no ZooKeeper.
//
// # Guarantees
//
//   - After a write is accepted, writes with an older token of the same name
//     are refused: [SQL.Guard], [Rename] and [NewHandler] say what is one step
//     with the check.
//   - The same token is accepted any number of times: a holder writes as often
//     as it likes.
//   - A fence fails closed. A write is refused if it has no token, if the token
//     cannot be read or stored, or if the fence's database or file fails.
//   - Databases and files keep tokens: a restart, or a crash at any moment,
//     lets no older token in.
//   - Every call ends with its context. A call to the operating system that
//     hangs, as on a dead network file system, does not.
//
// # Not guaranteed
//
//   - A fence protects a resource only if every write passes it. [Check] tells
//     whether one write path does.
//   - A former holder is refused from the first write of its successor on, not
//     from the moment of the loss: until then nobody knows of a newer token.
//   - Tokens are no credentials. A client that sends a very large token locks
//     out all others: authenticate those who may write.
//   - A hold whose Token is 0 (shared holds, and semaphores with a limit above
//     1) cannot be fenced: it is refused.
//
// # Cost
//
// [SQL.Guard]: one statement in PostgreSQL and SQLite, two in MySQL, by the
// primary key; transactions of one name wait for each other. [Rename]: a lock
// of a file, a write of 21 bytes with two fsyncs, and fsync of the file and of
// its directory. [NewHandler]: one [Store.Raise] for each request.
package fence
