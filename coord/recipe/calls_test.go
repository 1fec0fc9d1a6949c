package recipe_test

import (
	"cmp"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/barrier"
	"github.com/zkcoord/zkcoord/coord/counter"
	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/group"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/coord/slots"
	"github.com/zkcoord/zkcoord/coord/value"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// call is something that a recipe at the path /r does with the servers.
type call struct {
	name string
	do   func(ctx context.Context) error
}

// everyMinute is a schedule.
type everyMinute struct{}

func (everyMinute) Next(after time.Time) time.Time {
	return after.Truncate(time.Minute).Add(time.Minute)
}

// calls are the calls of all recipes that ask the servers, by client c.
func calls(t testing.TB, c *coord.Client) []call {
	const path = "/r"
	mutex, err := lock.New(c, path)
	require.NoError(t, err)
	shared, err := rwlock.New(c, path)
	require.NoError(t, err)
	leases, err := semaphore.New(c, path, 2)
	require.NoError(t, err)
	leader, err := election.New(c, path)
	require.NoError(t, err)
	gate, err := barrier.New(c, path)
	require.NoError(t, err)
	rounds, err := doublebarrier.New(c, path, 2)
	require.NoError(t, err)
	items, err := queue.New(c, path)
	require.NoError(t, err)
	jobs, err := once.New(c, path, once.KeepLast(1))
	require.NoError(t, err)
	schedule, err := cron.New(c, path, everyMinute{})
	require.NoError(t, err)
	numbers, err := slots.New(c, path, 2)
	require.NoError(t, err)
	members, err := group.New(c, path)
	require.NoError(t, err)
	setting, err := value.New(c, path)
	require.NoError(t, err)
	total, err := counter.New(c, path)
	require.NoError(t, err)
	hold := func(context.Context, *coord.Hold) error { return nil }
	return []call{
		{"lock.Acquire", func(ctx context.Context) error { return coordtest.Err(mutex.Acquire(ctx)) }},
		{"lock.TryAcquire", func(ctx context.Context) error { return coordtest.Err(mutex.TryAcquire(ctx)) }},
		{"lock.Do", func(ctx context.Context) error { return mutex.Do(ctx, hold) }},
		{"rwlock.AcquireRead", func(ctx context.Context) error { return coordtest.Err(shared.AcquireRead(ctx)) }},
		{"rwlock.AcquireWrite", func(ctx context.Context) error { return coordtest.Err(shared.AcquireWrite(ctx)) }},
		{"rwlock.DoRead", func(ctx context.Context) error { return shared.DoRead(ctx, hold) }},
		{"semaphore.Acquire", func(ctx context.Context) error { return coordtest.Err(leases.Acquire(ctx)) }},
		{"semaphore.TryAcquireN", func(ctx context.Context) error { return coordtest.Err(leases.TryAcquireN(ctx, 2)) }},
		{"semaphore.Limit", func(ctx context.Context) error { return coordtest.Err(leases.Limit(ctx)) }},
		{"semaphore.SetLimit", func(ctx context.Context) error { return leases.SetLimit(ctx, 3) }},
		{"election.Campaign", func(ctx context.Context) error { return coordtest.Err(leader.Campaign(ctx, nil)) }},
		{"election.Run", func(ctx context.Context) error {
			return leader.Run(ctx, nil, func(context.Context, *election.Term) error { return nil })
		}},
		{"election.Leader", func(ctx context.Context) error { return coordtest.Err(leader.Leader(ctx)) }},
		{"election.Observe", func(ctx context.Context) error { return coordtest.Last(leader.Observe(ctx)) }},
		{"election.Transfer", func(ctx context.Context) error { return leader.Transfer(ctx, "b") }},
		{"barrier.Set", gate.Set},
		{"barrier.Wait", gate.Wait},
		{"barrier.Closed", func(ctx context.Context) error { return coordtest.Err(gate.Closed(ctx)) }},
		{"doublebarrier.Enter", func(ctx context.Context) error { return coordtest.Err(rounds.Enter(ctx)) }},
		{"doublebarrier.Status", func(ctx context.Context) error { return coordtest.Err(rounds.Status(ctx)) }},
		{"doublebarrier.Absent", func(ctx context.Context) error { return coordtest.Err(rounds.Absent(ctx)) }},
		{"queue.Put", func(ctx context.Context) error { return items.Put(ctx, nil) }},
		{"queue.Receive", func(ctx context.Context) error { return coordtest.Err(items.Receive(ctx)) }},
		{"queue.TryReceive", func(ctx context.Context) error { return coordtest.Err(items.TryReceive(ctx)) }},
		{"queue.Take", func(ctx context.Context) error { return coordtest.Err(items.Take(ctx)) }},
		{"queue.Len", func(ctx context.Context) error { return coordtest.Err(items.Len(ctx)) }},
		{"queue.Peek", func(ctx context.Context) error { return coordtest.Err(items.Peek(ctx)) }},
		{"queue.DeadLetters", func(ctx context.Context) error { return coordtest.Err(items.DeadLetters(ctx)) }},
		{"queue.Acknowledge", func(ctx context.Context) error {
			return coordtest.Err(items.Acknowledge(ctx, "entry-100-0000000000"))
		}},
		{"queue.Acknowledged", func(ctx context.Context) error { return coordtest.Err(items.Acknowledged(ctx)) }},
		{"once.Do", func(ctx context.Context) error {
			return coordtest.Err(jobs.Do(ctx, "key", func(context.Context, *once.Run) ([]byte, error) { return nil, nil }))
		}},
		{"once.List", func(ctx context.Context) error { return coordtest.Last(jobs.List(ctx)) }},
		{"once.Prune", func(ctx context.Context) error { return coordtest.Err(jobs.Prune(ctx)) }},
		{"once.Forget", func(ctx context.Context) error { return jobs.Forget(ctx, "key") }},
		{"cron.Run", func(ctx context.Context) error {
			return schedule.Run(ctx, func(context.Context, *cron.Slot) ([]byte, error) { return nil, nil })
		}},
		{"cron.Begin", func(ctx context.Context) error { return coordtest.Err(schedule.Begin(ctx)) }},
		{"cron.State", func(ctx context.Context) error { return coordtest.Err(schedule.State(ctx)) }},
		{"slots.Acquire", func(ctx context.Context) error { return coordtest.Err(numbers.Acquire(ctx)) }},
		{"slots.TryAcquire", func(ctx context.Context) error { return coordtest.Err(numbers.TryAcquire(ctx)) }},
		{"slots.List", func(ctx context.Context) error { return coordtest.Err(numbers.List(ctx)) }},
		{"slots.Forget", func(ctx context.Context) error { return numbers.Forget(ctx, "host") }},
		{"group.Join", func(ctx context.Context) error { return coordtest.Err(members.Join(ctx, "id", nil)) }},
		{"group.Stay", func(ctx context.Context) error { return members.Stay(ctx, "id", nil) }},
		{"group.Members", func(ctx context.Context) error { return coordtest.Err(members.Members(ctx)) }},
		{"group.Observe", func(ctx context.Context) error { return coordtest.Last(members.Observe(ctx)) }},
		{"value.Get", func(ctx context.Context) error { return coordtest.Err(setting.Get(ctx)) }},
		{"value.Set", func(ctx context.Context) error { return setting.Set(ctx, nil) }},
		{"counter.Get", func(ctx context.Context) error { return coordtest.Err(total.Get(ctx)) }},
		{"counter.Add", func(ctx context.Context) error { return coordtest.Err(total.Add(ctx, 1)) }},
	}
}

// Which request was under way is nothing that the caller knows of: a schedule
// is at /r, not at /r/mark.
func TestACallThatNoServerAnswersNamesWhatItsCallerAskedFor(t *testing.T) {
	operations := map[string]string{
		"TryAcquire": "try", "TryAcquireN": "try", "Do": "acquire", "once.Do": "do", "DoRead": "acquire", "AcquireRead": "acquire", "AcquireWrite": "acquire",
		"SetLimit": "set limit", "Closed": "look at", "Absent": "status", "TryReceive": "receive", "Len": "count", "DeadLetters": "list the dead letters", "Acknowledged": "list the acknowledged letters",
		"cron.Run": "begin", "Members": "list members", "election.Run": "campaign",
	}
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		every := func(c *coord.Client) (all []call) {
			all = calls(b, c)
			its := tenants(b, c, "/r")
			for _, name := range recipesThatLeave {
				all = append(all, call{name + ".Remove", its[name].remove})
			}
			return all
		}
		for i := range every(b.Open()) {
			c := b.Open()
			b.Server.Inject(zkembed.Match{Session: c.SessionID()}, zkembed.Hang())
			call := every(c)[i]
			err := call.do(b.Within(time.Second))
			assert.ErrorIs(b, err, context.DeadlineExceeded, call.name)
			var told *coord.OpError
			if !assert.ErrorAs(b, err, &told, call.name) {
				continue
			}
			_, method, _ := strings.Cut(call.name, ".")
			op := cmp.Or(operations[call.name], operations[method], strings.ToLower(method))
			assert.Equal(b, op, told.Op, "%s: %v", call.name, err)
			assert.Contains(b, []string{"/r", "/r/id", "/r/key"}, told.Path, "%s: %v", call.name, err)
			assert.Equal(b, 1, strings.Count(err.Error(), "/r"), "%s names a request, too: %v", call.name, err)
			assert.Regexp(b, `the server has not answered for (1s|9\d\dms)`, err.Error(), call.name)
		}
	})
}
