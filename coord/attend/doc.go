// Package attend closes the sessions of processes that have died, so that
// others need not wait for the session timeout. "zkcoord attend" is this
// package as a service, one for each host; a program that starts others, such
// as a supervisor, can have an attendant of its own.
//
// # What
//
// A client made with coord.WithAttendant connects to the attendant's Unix
// socket, and tells it the servers, the session's id and password, the session
// timeout, and the credentials and TLS configuration of the client. It does so
// for each new session. When the process dies, the kernel closes the
// connection. After [Options.Grace], the attendant connects to the servers with
// the session's id and password and closes the session: its ephemeral nodes go,
// and the next in line holds. It tries one server after the other until the
// session timeout is over. coord.Client.Close says goodbye to the attendant,
// which then has nothing to do.
//
// # Guarantees
//
//   - A session is closed only when each connection on which it was announced
//     has been closed by all processes that had it, and no other was made
//     within the grace. A process that is stopped, swapped out or traced has
//     not closed it.
//   - Nothing depends on the attendant. Without it, or when it is killed,
//     stopped, restarted, full or of another version, clients go on as without
//     the option, and connect again by themselves, after 0.1 s at first and at
//     most 10 s later. An attendant that ends closes no session of a process
//     that lives.
//   - A message that cannot be read ends its connection and nothing else.
//   - A user's connections and all of them are limited ([Options]). The kernel
//     says whose they are (SO_PEERCRED). Once one user's processes have
//     announced a session, no other user's processes can.
//   - Secrets are kept in memory, and shown in no log and no error. A private
//     key of the client's TLS configuration is one of them.
//
// # Not guaranteed
//
//   - The loss of the host, and of its attendant, costs the session timeout.
//     So does a death while no attendant runs.
//   - Requests that the process had sent, to the servers of the resource that
//     the hold protects, may still be under way when the next one holds. Without
//     an attendant they have the session timeout to arrive; with it, the
//     grace. A resource that checks fencing tokens (coord.Hold.Token) needs
//     neither.
//   - A child process has the connection only if it was passed on: see
//     coord.WithAttendant. That copy ends with the attendant; a later attendant
//     learns of the session only from the process itself.
//   - A dialer of the client (coord.WithDialer) is not used: the attendant
//     connects by TCP to the servers as the list names them, which must mean
//     the same to it. A private key that cannot leave the process cannot be
//     passed on; the client reports that by event.SessionAttended. The
//     attendant trusts the authorities that the client trusts, as far as they
//     are known, and where a function of the program verifies servers, the
//     certificates that it has accepted. The client checks every five seconds
//     whether its certificates have been replaced, and passes the new ones on.
//
// # Cost
//
// A connection and some KiB for each client; for a session that is closed, one
// connection to a server and two round trips, after the grace, and one for each
// credential. At most 32 connections for sessions of one user are made at a
// time: by default a server accepts 60 from a host (maxClientCnxns).
package attend
