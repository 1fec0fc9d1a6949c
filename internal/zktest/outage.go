package zktest

import (
	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/zkembed"
)

// Crash takes all servers of the world down at once, without a farewell: real
// ones by SIGKILL. Nothing expires until Recover. The servers must be the
// test's own.
func (w *World) Crash() {
	w.t.Helper()
	w.mustBePrivate("Crash")
	w.crashed = true
	if w.backend == Embedded {
		w.Embedded().Stop()
		return
	}
	w.eachServer((*Server).Kill)
}

// Recover starts the servers again after Crash, on the same addresses, with all
// nodes and sessions. Every session has its whole time-out from then on. It
// returns when they serve.
func (w *World) Recover() {
	w.t.Helper()
	w.mustBePrivate("Recover")
	w.crashed = false
	if w.backend == Embedded {
		w.Embedded().Resume()
	} else {
		w.eachServer((*Server).Launch)
		w.eachServer((*Server).AwaitReady)
	}
	w.awaitAdmin()
}

// Freeze makes all servers of the world stand still: connections stay, new ones
// are accepted, nothing is answered. Real servers are stopped by SIGSTOP; the
// embedded one is cut off from its clients, and goes on expiring sessions. The
// servers must be the test's own.
func (w *World) Freeze() {
	w.t.Helper()
	w.mustBePrivate("Freeze")
	if w.backend == Embedded {
		w.frozen = w.Embedded().Partition(zkembed.Cut{NewConns: zkembed.AcceptDial})
		return
	}
	w.eachServer((*Server).Stop)
}

// Thaw ends Freeze.
func (w *World) Thaw() {
	w.t.Helper()
	w.mustBePrivate("Thaw")
	if w.backend == Embedded {
		w.frozen.Heal()
	} else {
		w.eachServer((*Server).Continue)
	}
	w.awaitAdmin()
}

// awaitAdmin waits until the Admin client, if there is one, is connected again.
func (w *World) awaitAdmin() {
	w.t.Helper()
	if w.admin != nil {
		Eventually(w.t, readyWithin, func() bool { return w.admin.State() == zk.StateHasSession }, "the admin client is back")
	}
}

func (w *World) mustBePrivate(what string) {
	w.t.Helper()
	if w.backend != Embedded && !w.private {
		w.t.Fatalf("%s would hit other tests too: use EachPrivate or NewPrivate", what)
	}
}

func (w *World) eachServer(do func(*Server) error) {
	w.t.Helper()
	for _, s := range w.realServers() {
		if err := do(s); err != nil {
			w.t.Fatal(err)
		}
	}
}
