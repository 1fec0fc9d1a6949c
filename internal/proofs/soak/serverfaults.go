package soak

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/internal/zktest"
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
