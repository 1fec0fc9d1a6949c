// Package zkembed is a ZooKeeper server inside your process, for development,
// demonstrations and tests. Any ZooKeeper client can talk to it, over TCP or
// over in-memory pipes. It uses nothing but the standard library.
//
// It keeps nothing: it lives in memory, is a single node, and loses its data
// when it is closed. In production point the same client at Apache ZooKeeper.
//
// # What it does
//
// Everything that clients see of Apache ZooKeeper 3.8: sessions that expire
// on the tick's grid, reconnecting with a password; persistent, ephemeral,
// sequential, container and TTL nodes, with exact Stat fields, zxids and
// sequence numbers; one-shot, persistent and recursive watches; multi; sync;
// ACLs of the schemes world, digest, auth and ip; TLS, with clients'
// certificates as identities of scheme x509 ([WithTLS]); SASL's DIGEST-MD5
// ([WithSASL]); the four-letter words ruok, srvr, stat, cons, mntr, conf, envi
// and isro, and the admin server's commands ([Server.AdminHandler]). Errors
// come in the server's order of checks, and events come before the replies that
// show their cause. The project compares it with a real server by tens of
// thousands of random operations.
//
// Like a real server it closes a connection that has not asked for a session
// and has sent nothing for 10 s, also in the middle of a packet; with a
// session, the session's end closes it. A client that does not read is not
// served until it does: at most 32 MiB wait for it, and a multiRead with a
// longer reply is answered with SystemError, where a real server tries to hold
// it.
//
// # What it does not do
//
// Quotas, Kerberos, reconfig and throttling. The names of children come sorted,
// where a real server's come in any order. It answers a check outside a multi,
// and checkWatches for this connection only; a real server of release 3.8.0
// never answers the first when it succeeds, and confuses connections in the
// second.
//
// # Making things go wrong
//
// A test can end a session ([Server.ExpireSession]), cut connections
// ([Server.DropConn]), cut the network one way or both ([Server.Partition]),
// take the server down and up ([Server.Restart]), and make chosen requests fail
// ([Server.Inject]): lost before they are applied or after, late, answered with
// an error. [Server.AddFollower] puts sessions on a server that runs behind, or
// whose link to its leader falls silent or is cut, in one direction or both,
// and it does not know. A [Fault] counts how often it struck, and the server
// counts requests, watches and nodes, so a test can prove what happened.
// Package control does the same for tests in other processes and languages.
//
// # Virtual time
//
// Inside a testing/synctest bubble, with [Server.DialContext] as the client's
// dialer and WithAddr(""), hours of heartbeats and expiries take milliseconds.
// Start the server inside the bubble, and close it and its clients before the
// bubble ends. go-zookeeper needs two more things: a HostProvider whose Next
// returns retryStart = true, since its reconnect loop otherwise spins while
// virtual time stands still, and a goroutine that drains its event channel
// after Close.
package zkembed
