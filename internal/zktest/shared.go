package zktest

import (
	"testing"
)

// sharedServer returns the real server that the tests of this binary share,
// started by the first that asks.
func sharedServer(t testing.TB) *Server {
	t.Helper()
	host.serverOnce.Do(func() { host.server, host.serverErr = startAlone(nil) })
	if host.serverErr != nil {
		t.Fatal(host.serverErr)
	}
	return host.server
}

// sharedEnsemble returns the ensemble that the tests of this binary share,
// started by the first that asks.
func sharedEnsemble(t testing.TB) *Ens {
	t.Helper()
	host.ensOnce.Do(func() { host.ens, host.ensErr = startEnsemble(nil) })
	if host.ensErr != nil {
		t.Fatal(host.ensErr)
	}
	return host.ens
}

// RequireReal returns a running real server of the test's own, which it may
// kill, stop, restart and wipe. Where there is no real server, the test is
// skipped or fails: see Require.
func RequireReal(t testing.TB, opts ...ServerOption) *Server {
	t.Helper()
	Require(t, Real)
	s, err := startAlone(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close(t.Failed(), t.Name()) })
	return s
}

// RequireEnsemble returns a running ensemble of three of the test's own.
func RequireEnsemble(t testing.TB, opts ...ServerOption) *Ens {
	t.Helper()
	Require(t, Ensemble)
	e, err := startEnsemble(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.close(t.Failed(), t.Name()) })
	return e
}
