package soak

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/proofs/history"
)

func TestTheRegisterRefusesTokensSmallerThanItHasSeen(t *testing.T) {
	g, err := newRegister()
	require.NoError(t, err)
	t.Cleanup(g.close)
	child, err := dialRegister(g.listener.Addr().String())
	require.NoError(t, err)
	require.True(t, g.use("lock", 5))
	require.True(t, child.use("lock", 5))
	require.True(t, child.use("lock", 9))
	require.False(t, g.use("lock", 8))
	require.False(t, child.use("lock", 5))
	require.True(t, child.use("other", 1))
	require.Equal(t, 2, g.rejected)
	require.Zero(t, g.stale())
	g.accepted["lock"] = append(g.accepted["lock"], 7)
	require.Equal(t, 1, g.stale(), "a register that accepts too much is caught")
}

func TestThePulseKnowsWhoWasGrantedSomethingAndTheLongestGap(t *testing.T) {
	p := newPulse()
	begin := time.Now()
	p.see(history.Record{Client: "c1.lock", Key: "/lock", Kind: history.Exclusive, Outcome: history.Open})
	require.False(t, p.since("c1", begin), "asked, and not granted")
	p.last["/lock"] = begin.Add(-time.Minute)
	p.see(history.Record{Client: "c1.lock", Key: "/lock", Kind: history.Exclusive, Outcome: history.OK})
	p.see(history.Record{Client: "c1.lock", Key: "/lock", Kind: history.Release, Outcome: history.OK})
	require.True(t, p.since("c1", begin))
	require.True(t, p.since("c1.lock", begin))
	require.False(t, p.since("c2", begin))
	require.Equal(t, []string{"c1.lock"}, p.workers("c1", "c2"))
	require.Equal(t, 1, p.total())
	require.GreaterOrEqual(t, p.longest["/lock"], time.Minute)
}

func TestFaultsArePickedByWeight(t *testing.T) {
	rng, picked := rand.New(rand.NewPCG(1, 1)), map[string]int{}
	for range 10_000 {
		picked[pick(rng, serverFaults, Options{Kills: true}.weight).kind]++
	}
	require.Len(t, picked, len(serverFaults))
	require.Greater(t, picked["followers killed"], picked["leaders killed"])
	for range 10_000 {
		require.NotContains(t, pick(rng, serverFaults, smoke.weight).kind, "killed")
	}
}

func TestTheEnvironmentSaysHowLongAndBySeed(t *testing.T) {
	t.Setenv("SOAK_DURATION", "")
	t.Setenv("SOAK_SEED", "")
	o, err := fromEnvironment()
	require.NoError(t, err)
	require.Equal(t, smoke.Duration, o.Duration)
	t.Setenv("SOAK_DURATION", "90m")
	t.Setenv("SOAK_SEED", "7")
	o, err = fromEnvironment()
	require.NoError(t, err)
	require.Equal(t, 90*time.Minute, o.Duration)
	require.EqualValues(t, 7, o.Seed)
	t.Setenv("SOAK_SEED", "seven")
	_, err = fromEnvironment()
	require.ErrorContains(t, err, "SOAK_SEED")
	t.Setenv("SOAK_DURATION", "-1s")
	_, err = fromEnvironment()
	require.ErrorContains(t, err, "SOAK_DURATION")
}

func TestTheClockKnowsHowLateTimersWere(t *testing.T) {
	var c clock
	now := time.Now()
	c.note(now, time.Second)
	c.note(now, 2*clockStep)
	require.Equal(t, time.Second, c.lag())
	c.note(now.Add(clockWindow+1), 0)
	require.Zero(t, c.lag())
}
