package gocron_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	zkgocron "github.com/zkcoord/zkcoord/contrib/gocron"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

var midnight = time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)

// replica is a scheduler with a clock of its own and a job every five minutes.
type replica struct {
	name    string
	clock   *clockwork.FakeClock
	late    time.Duration
	client  *coord.Client
	kill    func()
	begun   chan *replica // of all replicas: the job begins in one of them
	end     chan struct{} // ends the job
	skipped chan error    // why the job did not begin
}

// start starts the scheduler.
func (r *replica) start(t *testing.T, option gocron.SchedulerOption) {
	t.Helper()
	s, err := gocron.NewScheduler(option, gocron.WithClock(r.clock), gocron.WithLocation(time.UTC))
	require.NoError(t, err)
	job := func() {
		select {
		case r.begun <- r:
		case <-t.Context().Done():
		}
		select {
		case <-r.end:
		case <-t.Context().Done():
		}
	}
	_, err = s.NewJob(gocron.CronJob("*/5 * * * *", false), gocron.NewTask(job), gocron.WithName("report"),
		gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { r.skipped <- err })))
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() { require.NoError(t, s.Shutdown()) })
}

// tick lets the clock show some seconds more than the job's next instant.
func (r *replica) tick(t *testing.T) {
	t.Helper()
	require.NoError(t, r.clock.BlockUntilContext(coordtest.Limited(t), 1)) // the scheduler waits for it
	now := r.clock.Now()
	r.clock.Advance(now.Add(5*time.Minute).Truncate(5*time.Minute).Sub(now) + r.late)
}

// begins returns the replica in which the job begins.
func (r *replica) begins(t *testing.T) *replica {
	t.Helper()
	return zktest.Receive(t, coordtest.Soon, r.begun, "the job begins")
}

func replicas(t *testing.T) (all []*replica) {
	t.Helper()
	server := coordtest.Embedded(t)
	begun := make(chan *replica)
	for i := range 3 {
		r := &replica{
			name: fmt.Sprint("replica ", i), clock: clockwork.NewFakeClockAt(midnight),
			late:  time.Duration(i) * 10 * time.Second,
			begun: begun, end: make(chan struct{}), skipped: make(chan error, 8),
		}
		r.client, r.kill = coordtest.Mortal(t, server, coord.WithIdentity(r.name))
		all = append(all, r)
	}
	return all
}

func TestASlotIsRunOnceAlsoWhenAReplicaIsKilled(t *testing.T) {
	all := replicas(t)
	for _, r := range all {
		ledger, err := once.New(r.client, "/jobs", once.Keep(time.Hour))
		require.NoError(t, err)
		locker, err := zkgocron.NewLocker(ledger, time.Minute)
		require.NoError(t, err)
		locker.Now = r.clock.Now
		r.start(t, gocron.WithDistributedLocker(locker))
	}
	first := all[0]

	// 00:05. One replica begins the job, the others wait for its end.
	for _, r := range all {
		r.tick(t)
	}
	killed := first.begins(t)
	killed.kill()
	second := first.begins(t)
	require.NotSame(t, killed, second, "a killed replica's slot is run by another")
	second.end <- struct{}{}
	var third *replica
	for _, r := range all {
		if r != killed && r != second {
			third = r
		}
	}
	done := zktest.Receive(t, coordtest.Soon, third.skipped, "the slot is done")
	require.ErrorIs(t, done, zkgocron.ErrDone)
	require.ErrorContains(t, done, "report@2027-03-01T00:05:00Z, by "+second.name)

	// 00:10. The third replica's clock shows it long after the job has ended.
	second.tick(t)
	require.Same(t, second, first.begins(t))
	second.end <- struct{}{}
	third.tick(t)
	require.ErrorIs(t, zktest.Receive(t, coordtest.Soon, third.skipped, "the slot is done"), zkgocron.ErrDone)

	ledger, err := once.New(second.client, "/jobs")
	require.NoError(t, err)
	attempts := map[string]int{}
	for res, err := range ledger.List(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, once.Done, res.State)
		attempts[res.Key] = res.Attempt
	}
	require.Equal(t, map[string]int{"report@2027-03-01T00:05:00Z": 2, "report@2027-03-01T00:10:00Z": 1}, attempts)
}

func TestTheNextLeaderRunsTheJobsWhenTheLeaderIsKilled(t *testing.T) {
	all := replicas(t)
	first := all[0]
	electors := map[*replica]*zkgocron.Elector{}
	for _, r := range all {
		e, err := election.New(r.client, "/leader")
		require.NoError(t, err)
		elector := zkgocron.NewElector(e)
		electors[r] = elector
		require.ErrorIs(t, elector.IsLeader(t.Context()), zkgocron.ErrNotLeader)
		stopped := coordtest.Go(func() error { return elector.Run(t.Context(), []byte(r.name)) })
		t.Cleanup(func() { require.Error(t, zktest.Receive(t, coordtest.Soon, stopped, "Run ends")) })
		r.start(t, gocron.WithDistributedElector(elector))
	}
	leader := func(except *replica) (found *replica) {
		zktest.Eventually(t, coordtest.Soon, func() bool {
			for r, e := range electors {
				if r != except && e.IsLeader(t.Context()) == nil {
					found = r
				}
			}
			return found != nil
		}, "nobody leads")
		return found
	}

	killed := leader(nil)
	token := electors[killed].Term().Token()
	for _, r := range all {
		r.tick(t)
	}
	require.Same(t, killed, first.begins(t))
	killed.kill()
	next := leader(killed)
	require.Greater(t, electors[next].Term().Token(), token)
	require.Nil(t, electors[killed].Term())
	for _, r := range all {
		r.tick(t)
	}
	require.Same(t, next, first.begins(t), "the next slot")
}

func TestALockerNeedsALedgerAndSlots(t *testing.T) {
	_, err := zkgocron.NewLocker(nil, time.Minute)
	require.ErrorIs(t, err, coord.ErrInvalid)
	_, err = zkgocron.NewLocker(new(once.Once), time.Millisecond)
	require.ErrorIs(t, err, coord.ErrInvalid)
}
