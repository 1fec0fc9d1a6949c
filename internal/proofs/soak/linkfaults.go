package soak

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

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
