package soak

import (
	"fmt"
	"math/rand/v2"
	"net/rpc"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/internal/proofs/history"
	"github.com/zkcoord/zkcoord/internal/proofs/workload"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestMain(m *testing.M) {
	zktest.RegisterChild(childName, childMain)
	zktest.Main(m)
}

// TestSoak is short among the ordinary tests; make soak runs it for longer.
func TestSoak(t *testing.T) {
	opts, err := fromEnvironment()
	require.NoError(t, err)
	Run(t, opts)
}

func TestRequestsThatTheServersCarryOutLateAreSeen(t *testing.T) {
	begin := time.Now()
	at := func(session int64, xid int32, ms int, path string) zktest.Transaction {
		return zktest.Transaction{
			Session: session, Xid: xid, Time: begin.Add(time.Duration(ms) * time.Millisecond), Type: 2, Deleted: []string{path},
		}
	}
	all := []zktest.Transaction{
		at(1, 1, 0, ""), at(1, 3, 10, ""), at(2, 2, 20, ""), at(1, 2, 30, ""), // a goroutine overtook another
		at(1, 6, 50, ""), at(1, 7, 900, ""), at(1, 4, 1000, "/gate"), at(1, 5, 1001, ""), at(2, 3, 2000, ""),
	}
	found := late(all)
	require.Len(t, found, 2)
	require.EqualValues(t, 4, found[0].Xid)
	require.Equal(t, []time.Duration{time.Second, time.Second + time.Millisecond - 1}, opened(found, "/gate", begin))
	require.Empty(t, opened(found, "/other", begin))
}

func TestTheHeapThatTheLibraryKeepsIsSeenAndThatOfTheHarnessIsNot(t *testing.T) {
	before := libraryHeap()
	own := make([]byte, 16<<20)
	require.Less(t, libraryHeap()-before, float64(4<<20))
	var kept []coord.Line
	for i := range 300_000 {
		kept = append(kept, inspect.LockLine(fmt.Sprint("/lock/", i)))
	}
	require.Greater(t, libraryHeap()-before, float64(4<<20))
	require.NotEmpty(t, own)
	require.Len(t, kept, 300_000)
}

func TestSamplesStandForAsMuchAsTheirProbabilitySays(t *testing.T) {
	require.Zero(t, scaled(0, 0, 512<<10))
	require.InDelta(t, 512<<10, scaled(1, 64, 512<<10), 64)
	require.InDelta(t, 64<<20, scaled(1, 64<<20, 512<<10), 1)
}

func TestAPlaceThatComesToLifeTooLateIsAProblem(t *testing.T) {
	r, first := &run{tally: newTally()}, map[string]time.Duration{}
	for _, p := range places {
		if limit, sure := revived(p); sure {
			first[p.name] = limit
		}
	}
	r.judgeRevival(first, 0)
	require.Empty(t, r.tally.problems)
	first["lock"] += 2 * time.Second
	r.judgeRevival(first, 2*time.Second)
	require.Empty(t, r.tally.problems, "the machine was late")
	r.judgeRevival(first, time.Second)
	require.Len(t, r.tally.problems, 1)
	delete(first, "lock")
	r.judgeRevival(first, 0)
	require.Len(t, r.tally.problems, 2)
}

func TestALossThatIsSignalledAfterTheWindowIsAProblemUnlessTimersWereAsLate(t *testing.T) {
	r := &run{tally: newTally()}
	r.signalled("c1.lock", time.Millisecond, 0)
	r.signalled("c1.lock", promptly+time.Second, time.Second)
	require.Empty(t, r.tally.problems)
	r.signalled("c1.lock", promptly+time.Second+1, time.Second)
	require.Len(t, r.tally.problems, 1)
}

func TestTheRegisterRefusesTokensSmallerThanItHasSeen(t *testing.T) {
	g, err := newRegister()
	require.NoError(t, err)
	defer g.listener.Close()
	child, err := rpc.Dial("tcp", g.listener.Addr().String())
	require.NoError(t, err)
	defer child.Close()
	require.True(t, g.use("lock", 5))
	require.True(t, remoteUse(child, "lock", 5))
	require.True(t, remoteUse(child, "lock", 9))
	require.False(t, g.use("lock", 8))
	require.False(t, remoteUse(child, "lock", 5))
	require.True(t, remoteUse(child, "other", 1))
	require.Equal(t, 2, g.rejected)
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
		picked[workload.Pick(rng, serverFaults, Options{Kills: true}.weight).kind]++
	}
	require.Len(t, picked, len(serverFaults))
	require.Greater(t, picked["followers killed"], picked["leaders killed"])
	for range 10_000 {
		require.NotContains(t, workload.Pick(rng, serverFaults, smoke.weight).kind, "killed")
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
