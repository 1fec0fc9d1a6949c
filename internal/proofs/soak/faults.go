package soak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/internal/proofs/workload"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

// serverFault hits servers. It returns how often it happened, and leaves all
// three servers at work.
type serverFault struct {
	kind   string
	weight int
	kills  bool
	victim func(r *run, rng *rand.Rand) (*zktest.Server, error)
	cause  func(ctx context.Context, r *run, rng *rand.Rand, s *zktest.Server) (int, error)
}

var serverFaults = []serverFault{
	{"followers killed", 26, true, (*run).follower, killFollower},
	{"leaders killed", 14, true, (*run).leader, killLeader},
	{"leaders superseded", 7, false, (*run).leader, supersede},
	{"followers isolated", 12, false, (*run).follower, isolate},
	{"followers lagging", 7, false, (*run).follower, lag},
	{"followers' links silent one way", 10, false, (*run).follower, silence},
	{"followers' links broken out of a silence", 6, false, (*run).follower, breakLink},
	{"quorum links cut", 6, false, (*run).follower, cutLink},
	{"leaders paused", 6, false, (*run).leader, stopFor(T * 3 / 2)},
	{"followers paused", 6, false, (*run).follower, stopFor(3 * T)},
	{"quorums lost", 3, true, (*run).any, loseQuorum},
}

// weight is how often a fault is picked.
func (o Options) weight(f serverFault) int {
	if f.kills && !o.Kills {
		return 0
	}
	return f.weight
}

// kill kills a server.
func (r *run) kill(s *zktest.Server) error {
	if err := s.Kill(); err != nil {
		return err
	}
	r.tally.count("server kills")
	return nil
}

func killFollower(ctx context.Context, r *run, rng *rand.Rand, s *zktest.Server) (int, error) {
	if err := r.kill(s); err != nil {
		return 0, err
	}
	pause(ctx, within(rng, 0, T))
	return 1, s.Restart()
}

// killLeader waits for the next leader before the old one comes back.
func killLeader(_ context.Context, r *run, _ *rand.Rand, old *zktest.Server) (int, error) {
	if err := r.kill(old); err != nil {
		return 0, err
	}
	if _, err := r.ens.Leader(old); err != nil {
		return 0, err
	}
	return 1, old.Restart()
}

// supersede stops the leader until there is another, and lets it continue: for
// a moment it still believes that it leads, and answers its clients.
func supersede(ctx context.Context, r *run, rng *rand.Rand, old *zktest.Server) (int, error) {
	attached := sessions(old)
	if err := old.Stop(); err != nil {
		return 0, err
	}
	_, err := r.ens.Leader(old)
	pause(ctx, within(rng, 0, time.Second))
	if err := cmp.Or(old.Continue(), err); err != nil {
		return 0, err
	}
	return workload.Times(follows(old) && attached > 0), nil
}

func lag(ctx context.Context, r *run, rng *rand.Rand, s *zktest.Server) (int, error) {
	link := r.ens.Link(s)
	delayed := link.Stats().Delayed
	link.Delay(within(rng, 20*time.Millisecond, T/4))
	pause(ctx, within(rng, T/2, 2*T))
	delayed = link.Stats().Delayed - delayed
	link.Heal()
	return min(1, delayed), nil
}

func cutLink(_ context.Context, r *run, _ *rand.Rand, s *zktest.Server) (int, error) {
	cut := r.ens.Link(s).Cut()
	follows(s)
	return min(1, cut), nil
}

// stopFor has a server stand still for less than most.
func stopFor(most time.Duration) func(context.Context, *run, *rand.Rand, *zktest.Server) (int, error) {
	return func(ctx context.Context, _ *run, rng *rand.Rand, s *zktest.Server) (int, error) {
		if err := s.Stop(); err != nil {
			return 0, err
		}
		pause(ctx, within(rng, T/5, most))
		return 1, s.Continue()
	}
}

// loseQuorum kills two of three for up to twice the session timeout.
func loseQuorum(ctx context.Context, r *run, rng *rand.Rand, spared *zktest.Server) (int, error) {
	victims := slices.DeleteFunc(slices.Clone(r.ens.Servers()), func(s *zktest.Server) bool { return s == spared })
	for _, s := range victims {
		if err := r.kill(s); err != nil {
			return 0, err
		}
	}
	pause(ctx, within(rng, 0, 2*T))
	for _, s := range victims {
		if err := s.Launch(); err != nil {
			return 0, err
		}
	}
	return 1, nil
}

// any picks a server, whatever it does.
func (r *run) any(rng *rand.Rand) (*zktest.Server, error) { return r.ens.Servers()[rng.IntN(3)], nil }

func (r *run) leader(*rand.Rand) (*zktest.Server, error) { return r.ens.Leader() }

// follower picks a server that follows now, if possible one with clients.
func (r *run) follower(rng *rand.Rand) (*zktest.Server, error) {
	if err := r.ens.AwaitReady(); err != nil {
		return nil, err
	}
	followers := r.ens.Followers()
	if len(followers) == 0 {
		return nil, errNoFollower
	}
	rng.Shuffle(len(followers), func(i, j int) { followers[i], followers[j] = followers[j], followers[i] })
	i := slices.IndexFunc(followers, func(s *zktest.Server) bool { return sessions(s) > 1 })
	return followers[max(0, i)], nil
}

// sessions counts the sessions connected to a server.
func sessions(s *zktest.Server) int {
	answer, err := s.FourLetter("cons")
	if err != nil {
		return 0
	}
	return strings.Count(answer, "sid=0x")
}

// clientFault hits one client. It returns how often it happened.
type clientFault struct {
	kind   string
	weight int
	cause  onClient
}

type onClient func(ctx context.Context, r *run, m *member, rng *rand.Rand) int

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
	{"delays", 4, condition(T/2, func(s proxy.Stats) int { return s.Delayed }, delay)},
	{"flapping connections", 2, flap},
	{"servers that accept and do not answer", 2, condition(T/2, func(s proxy.Stats) int { return s.Hung }, hang)},
	{"sessions ended", 6, expire},
	{"session ids forgotten", 2, forget},
	{"nodes deleted", 5, deleteNode},
}

// onRequest waits for a request that the fault applies to: workers send all
// kinds all the time.
func onRequest(f proxy.Fault) onClient {
	return func(ctx context.Context, _ *run, m *member, _ *rand.Rand) int { return m.inject(ctx, f, 5*time.Second) }
}

// condition puts the client's proxies into a condition, each by its number, for
// least to twice the session timeout. It has happened if they counted any of
// it.
func condition(least time.Duration, count func(proxy.Stats) int, begin func(int, *zktest.Proxy, *rand.Rand)) onClient {
	return func(ctx context.Context, _ *run, m *member, rng *rand.Rand) int {
		before := count(m.stats())
		for i, p := range m.proxies {
			begin(i, p, rng)
		}
		pause(ctx, within(rng, least, 2*T))
		m.heal()
		return min(1, count(m.stats())-before)
	}
}

// hole holds packets back.
func hole(d proxy.Direction) onClient {
	held := func(s proxy.Stats) int { return s.Held }
	return condition(T/5, held, func(_ int, p *zktest.Proxy, _ *rand.Rand) { p.Blackhole(d) })
}

func delay(_ int, p *zktest.Proxy, rng *rand.Rand) {
	p.Delay(proxy.Both, within(rng, 5*time.Millisecond, T/5), T/10)
}

// hang has all connections cut, and two of three servers hang from then on.
func hang(i int, p *zktest.Proxy, _ *rand.Rand) {
	if i < 2 {
		p.Hang()
	}
	p.CutAll()
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

// expire ends the session at the servers, before its time.
func expire(ctx context.Context, r *run, m *member, _ *rand.Rand) int {
	over, id := m.over.Load(), m.client.Info().SessionID
	if id == 0 {
		return 0
	}
	before := time.Now()
	err := r.ens.ExpireSession(id)
	r.rec.Break(m.Name+".", "", 0, "session ended", before, unaware)
	if err != nil {
		return 0
	}
	return workload.Times(await(ctx, stuckAfter, func() bool { return m.over.Load() > over }))
}

func forget(ctx context.Context, _ *run, m *member, _ *rand.Rand) int {
	for _, p := range m.proxies {
		p.CutAll()
	}
	return m.inject(ctx, proxy.Fault{On: []int32{proxy.OpConnect}, Do: proxy.ForgetSession}, 5*time.Second)
}

// deleteNode deletes one of the client's own nodes, holding or waiting.
func deleteNode(_ context.Context, r *run, m *member, rng *rand.Rand) int {
	admin, id := r.w.Admin(), m.client.Info().SessionID
	if id == 0 {
		return 0 // between two sessions: 0 would be the owner of every persistent node
	}
	for _, i := range rng.Perm(len(places)) {
		if places[i].name == "group" {
			continue // see package group: whoever loses its node so may delete that of the next
		}
		place := r.w.Path(places[i].name)
		own, _ := ephemerals(admin, place, func(by int64) bool { return by == id })
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
		r.rec.Break(m.Name+".", workload.KeyOf(place, path), stat.Czxid, "node deleted", before, unaware)
		if err == nil {
			return 1
		}
	}
	return 0
}

// ephemerals lists the ephemeral nodes below a directory that an owner has. It
// passes over what it cannot read, and returns the errors.
func ephemerals(admin *zk.Conn, dir string, owned func(by int64) bool) (found []string, failed error) {
	names, _, err := admin.Children(dir)
	if err != nil && err != zk.ErrNoNode {
		failed = fmt.Errorf("%s: %w", dir, err)
	}
	for _, name := range names {
		path := dir + "/" + name
		there, stat, err := admin.Exists(path)
		switch {
		case err != nil:
			failed = errors.Join(failed, fmt.Errorf("%s: %w", path, err))
		case !there:
		case stat.EphemeralOwner == 0 && stat.NumChildren > 0:
			below, err := ephemerals(admin, path, owned)
			found, failed = append(found, below...), errors.Join(failed, err)
		case stat.EphemeralOwner != 0 && owned(stat.EphemeralOwner):
			found = append(found, path)
		}
	}
	return found, failed
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

// isolate cuts a follower with clients off from its leader, for less or more
// time than it needs to notice.
func isolate(ctx context.Context, r *run, rng *rand.Rand, s *zktest.Server) (int, error) {
	return r.hole(ctx, s, proxy.Both, within(rng, T, 3*T))
}

// silence holds back what a follower or its leader sends, for less or more time
// than the other needs to notice.
func silence(ctx context.Context, r *run, rng *rand.Rand, s *zktest.Server) (int, error) {
	way := [...]proxy.Direction{proxy.ToServer, proxy.ToClient}[rng.IntN(2)]
	return r.hole(ctx, s, way, within(rng, T/8, 3*T))
}

func (r *run) hole(ctx context.Context, s *zktest.Server, way proxy.Direction, lasts time.Duration) (int, error) {
	attached, link := sessions(s), r.ens.Link(s)
	held := link.Stats().Held
	link.Silence(way)
	pause(ctx, lasts)
	held = link.Stats().Held - held
	link.Heal()
	return workload.Times(follows(s) && attached > 0 && held > 0), nil
}

// breakLink silences the leader's stream to a follower with clients, cuts the
// other stream, and lets the first go on: the leader may never hear what the
// follower acknowledges then.
func breakLink(ctx context.Context, r *run, rng *rand.Rand, s *zktest.Server) (int, error) {
	attached, link := sessions(s), r.ens.Link(s)
	before := link.Stats()
	link.Silence(proxy.ToClient)
	pause(ctx, within(rng, T/8, T/2))
	link.CutWay(proxy.ToServer)
	pause(ctx, within(rng, 0, T/8))
	link.Heal()
	pause(ctx, within(rng, 0, T/8))
	lost := link.Stats().Lost - before.Lost
	link.Cut()
	return workload.Times(follows(s) && attached > 0 && link.Stats().Held > before.Held && lost > 0), nil
}

// follows waits until a server has found its leader again.
func follows(s *zktest.Server) bool {
	return await(context.Background(), time.Minute, func() bool { return s.Mode() == "follower" })
}
