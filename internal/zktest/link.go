package zktest

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
	"github.com/zkcoord/zkcoord/zkembed"
)

// Proxy is package proxy's frame-aware TCP proxy.
type Proxy = proxy.Proxy

// NewProxy starts a proxy in front of the server at addr, closed at the test's
// end.
func NewProxy(t testing.TB, addr string) *Proxy {
	t.Helper()
	p, err := proxy.New(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Link is the way from one server of an ensemble to its leader, whichever of
// the others that is. It exists in ensembles started WithQuorumLinks, and
// carries something only while the server follows.
type Link struct{ proxies []*proxy.Proxy }

// Link returns the way from the given server to its leader.
func (e *Ens) Link(of *Server) *Link {
	for i, s := range e.servers {
		if s == of && len(e.links[i].proxies) > 0 {
			return e.links[i]
		}
	}
	panic("zktest: the ensemble was not started WithQuorumLinks, or the server is not one of it")
}

// Isolate lets nothing more pass between the server and its leader; neither
// notices until it misses the other's pings.
func (l *Link) Isolate() { l.Silence(proxy.Both) }

// Silence holds back what one of them sends, until Heal: ToServer is to the
// leader. Neither notices until it misses the other's pings.
func (l *Link) Silence(d proxy.Direction) {
	for _, p := range l.proxies {
		p.Blackhole(d)
	}
}

// CutWay breaks one direction once, as Proxy.CutWay does: ToServer is to the
// leader. It returns how many connections were hit; Cut ends them.
func (l *Link) CutWay(d proxy.Direction) int {
	cut := 0
	for _, p := range l.proxies {
		cut += p.CutWay(d)
	}
	return cut
}

// Delay makes everything between the server and its leader take d longer in
// each direction: the server lags behind.
func (l *Link) Delay(d time.Duration) {
	for _, p := range l.proxies {
		p.Delay(proxy.Both, d, 0)
	}
}

// Cut breaks the link once; the server may connect again. It returns how many
// connections were cut.
func (l *Link) Cut() int {
	cut := 0
	for _, p := range l.proxies {
		cut += p.CutAll()
	}
	return cut
}

// Heal ends Isolate, Silence and Delay.
func (l *Link) Heal() {
	for _, p := range l.proxies {
		p.Heal()
	}
}

// Stats counts the actions of the link's proxies: a test can prove that its
// fault happened.
func (l *Link) Stats() proxy.Stats { return proxy.Total(l.proxies) }

func (l *Link) close() {
	for _, p := range l.proxies {
		p.Close()
	}
}

// Crash takes all servers of the world down together, without a farewell: real
// ones by SIGKILL. Nothing expires until Recover. The servers must be the
// test's own.
func (w *World) Crash() {
	w.t.Helper()
	w.toAll("Crash", (*zkembed.Server).Stop, (*Server).Kill)
	w.crashed = true
}

// Recover starts the servers again after Crash, on the same addresses, with all
// nodes and sessions. Every session has its whole timeout from then on. It
// returns when they serve.
func (w *World) Recover() {
	w.t.Helper()
	w.toAll("Recover", (*zkembed.Server).Resume, (*Server).Launch, (*Server).AwaitReady)
	w.crashed = false
	w.awaitAdmin()
}

// Freeze makes all servers of the world stand still: connections stay, new ones
// are accepted, nothing is answered. Real servers are stopped by SIGSTOP; the
// embedded one is cut off from its clients, and goes on expiring sessions. The
// servers must be the test's own.
func (w *World) Freeze() {
	w.t.Helper()
	w.toAll("Freeze", func(s *zkembed.Server) {
		w.frozen = s.Partition(zkembed.Cut{NewConns: zkembed.AcceptDial})
	}, (*Server).Stop)
}

// Thaw ends Freeze.
func (w *World) Thaw() {
	w.t.Helper()
	w.toAll("Thaw", func(*zkembed.Server) { w.frozen.Heal() }, (*Server).Continue)
	w.awaitAdmin()
}

// toAll does something to the embedded server, or one thing after the other to
// all real ones, which must be the test's own.
func (w *World) toAll(what string, embedded func(*zkembed.Server), real ...func(*Server) error) {
	w.t.Helper()
	if s, ok := w.servers.(*zkembed.Server); ok {
		embedded(s)
		return
	}
	if !w.private {
		w.t.Fatalf("%s would hit other tests too: use EachPrivate or NewPrivate", what)
	}
	for _, do := range real {
		for _, s := range w.realServers() {
			if err := do(s); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// awaitAdmin waits until the Admin client, if there is one, is connected again.
func (w *World) awaitAdmin() {
	w.t.Helper()
	if w.admin != nil {
		Eventually(w.t, readyWithin, func() bool { return w.admin.State() == zk.StateHasSession }, "the admin client is back")
	}
}
