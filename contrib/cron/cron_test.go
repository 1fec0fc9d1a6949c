package cron_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/require"

	zkcron "github.com/zkcoord/zkcoord/contrib/cron"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// replica is a crontab with a job every five minutes, in virtual time.
type replica struct {
	name   string
	client *coord.Client
	kill   func()
	logged chan string
}

// Info and Error make the replica its crontab's logger, without what the
// crontab itself says.
func (r *replica) Info(text string, values ...any) {
	if text == "done" {
		r.logged <- fmt.Sprint(text, values)
	}
}

func (r *replica) Error(err error, text string, values ...any) {
	if text == "once" {
		r.logged <- fmt.Sprint(err, values)
	}
}

// replicas starts three crontabs with the job, which begin it some seconds
// late.
func replicas(b coordtest.Bubble, job func(r *replica)) (all []*replica) {
	for i := range 3 {
		r := &replica{name: fmt.Sprint("replica ", i), logged: make(chan string, 8)}
		r.client, r.kill = coordtest.Mortal(b.T, b.Server, coord.WithIdentity(r.name), coord.WithSessionTimeout(coordtest.T),
			coord.WithTick(coordtest.Tick))
		ledger, err := once.New(r.client, "/jobs", once.Keep(time.Hour))
		require.NoError(b, err)
		ctx, cancel := context.WithCancel(b.Context())
		each, err := zkcron.Once(ctx, ledger, "report", time.Minute, r)
		require.NoError(b, err)
		late := func(job cron.Job) cron.Job {
			return cron.FuncJob(func() {
				time.Sleep(time.Duration(i) * 10 * time.Second)
				job.Run()
			})
		}
		crontab := cron.New(cron.WithLocation(time.UTC), cron.WithLogger(r))
		_, err = crontab.AddJob("*/5 * * * *",
			cron.NewChain(cron.Recover(r), late, each).Then(cron.FuncJob(func() { job(r) })))
		require.NoError(b, err)
		crontab.Start()
		b.Cleanup(func() {
			cancel()
			<-crontab.Stop().Done()
		})
		all = append(all, r)
	}
	return all
}

// slots are the attempts at each slot that is done.
func slots(b coordtest.Bubble) map[string]int {
	ledger, err := once.New(b.Open(), "/jobs")
	require.NoError(b, err)
	attempts := map[string]int{}
	for res, err := range ledger.List(b.Context()) {
		require.NoError(b, err)
		require.Equal(b, once.Done, res.State)
		attempts[res.Key] = res.Attempt
	}
	return attempts
}

func TestASlotIsRunOnceAlsoWhenAReplicaIsKilled(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		begun, end := make(chan *replica), make(chan bool)
		all := replicas(b, func(r *replica) {
			select {
			case begun <- r:
			case <-b.Context().Done():
			}
			select {
			case <-end:
			case <-b.Context().Done():
			}
		})
		killed := <-begun // 00:05
		time.Sleep(30 * time.Second)
		died := time.Now()
		killed.kill()
		second := <-begun
		require.NotSame(b, killed, second)
		require.Less(b, time.Since(died), time.Second, "the others waited for the slot")
		end <- true
		end <- true // also the killed one's, which nobody hears of
		for _, r := range all {
			if r != killed && r != second {
				done := zktest.Receive(b, time.Minute, r.logged, "%s does not know", r.name)
				require.Contains(b, done, "done[job report@2000-01-01T00:05:00Z by "+second.name)
			}
		}
		third := <-begun // 00:10
		require.NotSame(b, killed, third)
		time.Sleep(time.Minute)
		end <- true
		synctest.Wait()
		require.Equal(b, map[string]int{"report@2000-01-01T00:05:00Z": 2, "report@2000-01-01T00:10:00Z": 1}, slots(b))
		require.Contains(b, <-killed.logged, "hold lost")
	})
}

func TestASlotInWhichTheJobPanicsIsRunByAnother(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		ran := make(chan *replica, 3)
		replicas(b, func(r *replica) {
			ran <- r
			if len(ran) == 1 {
				panic("the first fails")
			}
		})
		time.Sleep(6 * time.Minute)
		require.Equal(b, map[string]int{"report@2000-01-01T00:05:00Z": 2}, slots(b))
		require.NotSame(b, <-ran, <-ran)
	})
}

func TestAWrapperNeedsALedgerANameAndSlots(t *testing.T) {
	for _, err := range []error{
		coordtest.Err(zkcron.Once(t.Context(), nil, "report", time.Minute, cron.DiscardLogger)),
		coordtest.Err(zkcron.Once(t.Context(), new(once.Once), "report", time.Minute, nil)),
		coordtest.Err(zkcron.Once(t.Context(), new(once.Once), "", time.Minute, cron.DiscardLogger)),
		coordtest.Err(zkcron.Once(t.Context(), new(once.Once), "report", time.Millisecond, cron.DiscardLogger)),
	} {
		require.ErrorIs(t, err, coord.ErrInvalid)
	}
}
