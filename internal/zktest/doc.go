// Package zktest is the one front door of the project's tests: it gives them
// servers, a namespace of their own, ways to break things, and a look at what
// they left behind.
//
// # Use
//
//	func TestMain(m *testing.M) { zktest.Main(m) }
//
//	func TestAHolderExcludesOthers(t *testing.T) {
//		zktest.Each(t, func(t *testing.T, w *zktest.World) {
//			client := open(t, w.ConnectString(), w.Path("locks"))
//			...
//		})
//	}
//
// # The switch
//
// The environment variable ZKTEST_SERVERS selects the servers:
//
//	embedded  zkembed only
//	real      real ZooKeeper only: single servers and ensembles of three
//	all       both; it is an error if real ZooKeeper is not installed
//	(unset)   embedded, and real where it is installed; if it is not, those
//	          tests are skipped and say so, unless CI is set, which makes it an
//	          error
//
// ZKTEST_ZOOKEEPER names a folder with another ZooKeeper for the real servers
// than the installed one.
//
// A real server is a child process of Debian's ZooKeeper 3.8, with a tick of
// 200 ms and its data in memory. It dies with the test binary, however that
// ends, and leaves nothing behind. A failed test keeps the logs of its servers
// in the folder artefacts (or ZKTEST_ARTEFACTS).
//
// # Vocabulary
//
// A Backend is a kind of server: Embedded, Real, Ensemble. Each and New give a
// World on it: one namespace for one test. The worlds of a test binary share
// one real server and one ensemble, started when first asked for; a test that
// kills, stops or restarts servers asks for its own by EachPrivate, NewPrivate,
// RequireReal or RequireEnsemble. An embedded server is always the test's own.
//
// World.Admin is a plain client for setting up and tampering. World.Proxy is a
// proxy in front of the server that cuts, drops, holds and delays by opcode,
// path and direction: see package proxy. World.ExpireSession and World.DropConn
// work on every backend. Server and Ens kill, stop, continue, restart and wipe
// real servers by process; Ens.Link cuts a follower off from its leader. Child
// runs a function of the test binary in a process of its own, to be killed or
// stopped.
//
// At the end of a test its world waits until no ephemeral node and no watch of
// the test is left, fails the test if one stays, and removes the namespace.
// Main fails if a goroutine is left.
package zktest
