package soak

import (
	"context"
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
	cause  func(ctx context.Context, r *run, rng *rand.Rand) (int, error)
}

var serverFaults = []serverFault{
	{"followers killed", 26, killFollower},
	{"leaders killed", 14, killLeader},
	{"leaders superseded", 7, supersede},
	{"followers isolated", 12, isolate},
	{"followers lagging", 7, lag},
	{"followers' links silent one way", 10, silence},
	{"followers' links broken out of a silence", 6, breakLink},
	{"quorum links cut", 6, cutLink},
	{"leaders paused", 6, pauseLeader},
	{"followers paused", 6, pauseFollower},
	{"quorums lost", 3, loseQuorum},
}

// weight is how often a fault is picked.
func (o Options) weight(f serverFault) int {
	if !o.Kills && slices.Contains([]string{"followers killed", "leaders killed", "quorums lost"}, f.kind) {
		return 0
	}
	return f.weight
}

func killFollower(ctx context.Context, r *run, rng *rand.Rand) (int, error) {
	s, err := r.follower(rng)
	if err != nil {
		return 0, err
	}
	return 1, r.killAndRestart(ctx, rng, s)
}

func (r *run) killAndRestart(ctx context.Context, rng *rand.Rand, s *zktest.Server) error {
	if err := s.Kill(); err != nil {
		return err
	}
	r.tally.count("server kills")
	pause(ctx, within(rng, 0, T))
	return s.Restart()
}

// killLeader waits for the next leader before the old one comes back.
func killLeader(_ context.Context, r *run, _ *rand.Rand) (int, error) {
	old, err := r.ens.Leader()
	if err != nil {
		return 0, err
	}
	if err := old.Kill(); err != nil {
		return 0, err
	}
	r.tally.count("server kills")
	if _, err := r.ens.Leader(old); err != nil {
		return 0, err
	}
	return 1, old.Restart()
}

// supersede stops the leader until there is another, and lets it continue: for
// a moment it still believes that it leads, and answers its clients.
func supersede(ctx context.Context, r *run, rng *rand.Rand) (int, error) {
	old, err := r.ens.Leader()
	if err != nil {
		return 0, err
	}
	attached := sessions(old)
	if err := old.Stop(); err != nil {
		return 0, err
	}
	_, err = r.ens.Leader(old)
	pause(ctx, within(rng, 0, time.Second))
	if err := old.Continue(); err != nil {
		return 0, err
	}
	if err != nil {
		return 0, err
	}
	follows := func() bool { return old.Mode() == "follower" }
	if !await(context.Background(), time.Minute, follows) || attached == 0 {
		return 0, nil
	}
	return 1, nil
}

func lag(ctx context.Context, r *run, rng *rand.Rand) (int, error) {
	s, err := r.follower(rng)
	if err != nil {
		return 0, err
	}
	link := r.ens.Link(s)
	delayed := link.Stats().Delayed
	link.Delay(within(rng, 20*time.Millisecond, T/4))
	pause(ctx, within(rng, T/2, 2*T))
	delayed = link.Stats().Delayed - delayed
	link.Heal()
	return min(1, delayed), nil
}

func cutLink(_ context.Context, r *run, rng *rand.Rand) (int, error) {
	s, err := r.follower(rng)
	if err != nil {
		return 0, err
	}
	cut := r.ens.Link(s).Cut()
	r.follows(s)
	return min(1, cut), nil
}

func pauseLeader(ctx context.Context, r *run, rng *rand.Rand) (int, error) {
	s, err := r.ens.Leader()
	if err != nil {
		return 0, err
	}
	return stopFor(ctx, s, within(rng, T/5, T*3/2))
}

func pauseFollower(ctx context.Context, r *run, rng *rand.Rand) (int, error) {
	s, err := r.follower(rng)
	if err != nil {
		return 0, err
	}
	return stopFor(ctx, s, within(rng, T/5, 3*T))
}

func stopFor(ctx context.Context, s *zktest.Server, d time.Duration) (int, error) {
	if err := s.Stop(); err != nil {
		return 0, err
	}
	pause(ctx, d)
	return 1, s.Continue()
}

// loseQuorum kills two of three for up to twice the session time-out.
func loseQuorum(ctx context.Context, r *run, rng *rand.Rand) (int, error) {
	victims := rng.Perm(3)[:2]
	for _, i := range victims {
		if err := r.ens.Servers()[i].Kill(); err != nil {
			return 0, err
		}
		r.tally.count("server kills")
	}
	pause(ctx, within(rng, 0, 2*T))
	for _, i := range victims {
		if err := r.ens.Servers()[i].Launch(); err != nil {
			return 0, err
		}
	}
	return 1, nil
}

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
	for _, s := range followers {
		if sessions(s) > 1 {
			return s, nil
		}
	}
	return followers[0], nil
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
		if places[i].name == "group" {
			continue // see package group: whoever loses its node so may delete that of the next
		}
		place := r.w.Path(places[i].name)
		own := ownNodes(admin, place, id)
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
		case stat.EphemeralOwner == 0 && stat.NumChildren > 0:
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

// isolate cuts a follower with clients off from its leader, for less or more
// time than it needs to notice.
func isolate(ctx context.Context, r *run, rng *rand.Rand) (int, error) {
	return r.hole(ctx, rng, proxy.Both, within(rng, T, 3*T))
}

// silence holds back what a follower or its leader sends, for less or more time
// than the other needs to notice.
func silence(ctx context.Context, r *run, rng *rand.Rand) (int, error) {
	way := [...]proxy.Direction{proxy.ToServer, proxy.ToClient}[rng.IntN(2)]
	return r.hole(ctx, rng, way, within(rng, T/8, 3*T))
}

func (r *run) hole(ctx context.Context, rng *rand.Rand, way proxy.Direction, lasts time.Duration) (int, error) {
	s, err := r.follower(rng)
	if err != nil {
		return 0, err
	}
	attached, link := sessions(s), r.ens.Link(s)
	held := link.Stats().Held
	link.Silence(way)
	pause(ctx, lasts)
	held = link.Stats().Held - held
	link.Heal()
	if !r.follows(s) || attached == 0 {
		return 0, nil
	}
	return min(1, held), nil
}

// breakLink silences the leader's stream to a follower with clients, cuts the
// other stream, and lets the first go on: the leader may never hear what the
// follower acknowledges then.
func breakLink(ctx context.Context, r *run, rng *rand.Rand) (int, error) {
	s, err := r.follower(rng)
	if err != nil {
		return 0, err
	}
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
	if !r.follows(s) || attached == 0 || link.Stats().Held == before.Held {
		return 0, nil
	}
	return min(1, lost), nil
}

// follows waits until a server has found its leader again.
func (r *run) follows(s *zktest.Server) bool {
	return await(context.Background(), time.Minute, func() bool { return s.Mode() == "follower" })
}
