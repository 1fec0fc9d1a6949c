package soak

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

// clientFault hits one client. It returns how often it happened.
type clientFault struct {
	kind   string
	weight int
	cause  func(ctx context.Context, r *run, m *member, rng *rand.Rand) int
}

var clientFaults = []clientFault{
	{"connections cut", 10, func(_ context.Context, _ *run, m *member, _ *rand.Rand) (n int) {
		for _, p := range m.proxies {
			n += p.CutAll()
		}
		return n
	}},
	{"create replies lost", 16, onRequest(proxy.Fault{On: []int32{proxy.OpCreate}, Do: proxy.CutOnReply})},
	{"creates lost", 8, onRequest(proxy.Fault{On: []int32{proxy.OpCreate}, Do: proxy.DropAndCut})},
	{"creates cut after sending", 6, onRequest(proxy.Fault{On: []int32{proxy.OpCreate}, Do: proxy.CutAfter})},
	{"deletes lost", 6, onRequest(proxy.Fault{On: []int32{proxy.OpDelete}, Do: proxy.DropAndCut})},
	{"delete replies lost", 6, onRequest(proxy.Fault{On: []int32{proxy.OpDelete}, Do: proxy.CutOnReply})},
	{"lists lost", 4, onRequest(proxy.Fault{On: proxy.Lists, Do: proxy.CutOnReply})},
	{"transaction replies lost", 4, onRequest(proxy.Fault{On: []int32{proxy.OpMulti}, Do: proxy.CutOnReply})},
	{"connections cut at an event", 4, onRequest(proxy.Fault{On: []int32{proxy.OpNotification}, Do: proxy.CutOnReply})},
	{"black holes both ways", 5, hole(proxy.Both)},
	{"black holes to the server", 4, hole(proxy.ToServer)},
	{"black holes to the client", 4, hole(proxy.ToClient)},
	{"delays", 4, delay},
	{"flapping connections", 2, flap},
	{"servers that accept and do not answer", 2, hang},
	{"sessions ended", 6, expire},
	{"session ids forgotten", 2, forget},
	{"nodes deleted", 5, deleteNode},
}

// onRequest waits for a request that the fault applies to: workers send all
// kinds all the time.
func onRequest(f proxy.Fault) func(context.Context, *run, *member, *rand.Rand) int {
	return func(ctx context.Context, _ *run, m *member, _ *rand.Rand) int { return m.inject(ctx, f, 5*time.Second) }
}

// hole holds packets back for up to twice the session time-out.
func hole(d proxy.Direction) func(context.Context, *run, *member, *rand.Rand) int {
	return func(ctx context.Context, _ *run, m *member, rng *rand.Rand) int {
		held := m.stats().Held
		for _, p := range m.proxies {
			p.Blackhole(d)
		}
		pause(ctx, within(rng, T/5, 2*T))
		m.heal()
		return min(1, m.stats().Held-held)
	}
}

func delay(ctx context.Context, _ *run, m *member, rng *rand.Rand) int {
	delayed := m.stats().Delayed
	for _, p := range m.proxies {
		p.Delay(proxy.Both, within(rng, 5*time.Millisecond, T/5), T/10)
	}
	pause(ctx, within(rng, T/2, 2*T))
	m.heal()
	return min(1, m.stats().Delayed-delayed)
}

func flap(ctx context.Context, _ *run, m *member, rng *rand.Rand) (cuts int) {
	var stops []func() int
	for _, p := range m.proxies {
		stops = append(stops, p.Flap(50*time.Millisecond, 500*time.Millisecond, rng.Uint64()))
	}
	pause(ctx, within(rng, T, 3*T))
	for _, stop := range stops {
		cuts += stop()
	}
	return min(1, cuts)
}

func hang(ctx context.Context, _ *run, m *member, rng *rand.Rand) int {
	hung := m.stats().Hung
	for i, p := range m.proxies {
		if i < 2 {
			p.Hang()
		}
		p.CutAll()
	}
	pause(ctx, within(rng, T/2, 2*T))
	m.heal()
	return min(1, m.stats().Hung-hung)
}

// expire ends the session at the servers, before its time.
func expire(ctx context.Context, r *run, m *member, _ *rand.Rand) int {
	over, id := m.over.Load(), m.client.SessionID()
	if id == 0 {
		return 0
	}
	before := time.Now()
	err := r.ens.ExpireSession(id)
	r.rec.Break(m.Name+".", "", 0, "session ended", before, unaware)
	if err != nil {
		return 0
	}
	if !await(ctx, stuckAfter, func() bool { return m.over.Load() > over }) {
		return 0
	}
	return 1
}

func forget(ctx context.Context, _ *run, m *member, _ *rand.Rand) int {
	for _, p := range m.proxies {
		p.CutAll()
	}
	return m.inject(ctx, proxy.Fault{On: []int32{proxy.OpConnect}, Do: proxy.ForgetSession}, 5*time.Second)
}

// deleteNode deletes one of the client's own nodes, holding or waiting.
func deleteNode(_ context.Context, r *run, m *member, rng *rand.Rand) int {
	admin, id := r.w.Admin(), m.client.SessionID()
	if id == 0 {
		return 0 // between two sessions: 0 would be the owner of every persistent node
	}
	for _, i := range rng.Perm(len(places)) {
		key := r.w.Path(places[i].name)
		own := ownNodes(admin, key, id)
		if len(own) == 0 {
			continue
		}
		path := own[rng.IntN(len(own))]
		_, stat, err := admin.Get(path)
		if err != nil {
			continue
		}
		before := time.Now()
		err = admin.Delete(path, stat.Version)
		r.rec.Break(m.Name+".", key, stat.Czxid, "node deleted", before, unaware)
		if err == nil {
			return 1
		}
	}
	return 0
}

// ownNodes lists a session's nodes in a directory and in those below it.
func ownNodes(admin *zk.Conn, dir string, session int64) (own []string) {
	names, _, err := admin.Children(dir)
	if err != nil {
		return nil
	}
	for _, name := range names {
		_, stat, err := admin.Exists(dir + "/" + name)
		switch {
		case err != nil || stat == nil:
		case stat.EphemeralOwner == session:
			own = append(own, dir+"/"+name)
		case stat.EphemeralOwner == 0 && slices.Contains([]string{"locks", "leases", "taken", "producers"}, name):
			own = append(own, ownNodes(admin, dir+"/"+name, session)...)
		}
	}
	return own
}

func (m *member) heal() {
	for _, p := range m.proxies {
		p.Heal()
	}
}

// within draws a duration of at least least and less than most.
func within(rng *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rng.Int64N(int64(most-least)))
}

// await polls a condition until it holds or the time is over.
func await(ctx context.Context, limit time.Duration, cond func() bool) bool {
	deadline := time.Now().Add(limit)
	for !cond() {
		if time.Now().After(deadline) || !pause(ctx, 5*time.Millisecond) {
			return cond()
		}
	}
	return true
}
