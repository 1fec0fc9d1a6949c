package zktest

import (
	"fmt"
	"testing"
	"time"

	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
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

// add makes a proxy in front of another server's quorum port and returns the
// proxy's port.
func (l *Link) add(quorumPort int) (int, error) {
	p, err := proxy.NewRaw(fmt.Sprintf("127.0.0.1:%d", quorumPort))
	if err != nil {
		return 0, err
	}
	l.proxies = append(l.proxies, p)
	return p.Port(), nil
}

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

// Stats returns what the link's proxies did, so that a test can prove that its
// fault happened.
func (l *Link) Stats() proxy.Stats { return proxy.Total(l.proxies) }

func (l *Link) close() {
	for _, p := range l.proxies {
		p.Close()
	}
}
