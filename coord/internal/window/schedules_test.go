package window

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var largest = flag.String("scope", "small", "how far to explore the model: small, medium (make test) or large (make model)")

// scopes are what is explored; each size has those of the smaller ones, too.
// The least T that servers grant is two ticks, which is four pings.
var scopes = []struct {
	size   string
	scopes []scope
}{
	{"small", []scope{
		{name: "pings on time", timeout: 4, ping: 1, under: 2, budget: budget{reads: 1, writes: 2}},
		{name: "a reconnect", timeout: 4, ping: 1, under: 2, budget: budget{writes: 1, reconnects: 1}},
		{name: "another leader", timeout: 4, ping: 1, under: 1, budget: budget{reads: 1, writes: 1, reconnects: 1, leaders: 1}},
		{name: "suspends", timeout: 4, ping: 1, under: 1, budget: budget{reads: 1, writes: 2, suspends: 2}},
		{name: "a slow clock", timeout: 4, ping: 1, slow: true, under: 1, budget: budget{reads: 1, writes: 2}},
	}},
	{"medium", []scope{
		{name: "late pings", timeout: 5, ping: 1, late: 1, under: 2, budget: budget{reads: 1, writes: 2}},
		{name: "late pings and a reconnect", timeout: 4, ping: 1, late: 1, under: 2, budget: budget{reads: 1, writes: 1, reconnects: 1}},
		{name: "late pings and another leader", timeout: 4, ping: 1, late: 1, under: 2, budget: budget{writes: 2, reconnects: 1, leaders: 1}},
		{name: "late pings and suspends", timeout: 4, ping: 1, late: 1, under: 1, budget: budget{reads: 1, writes: 2, suspends: 2}},
		{name: "late pings and a slow clock", timeout: 5, ping: 1, late: 1, slow: true, under: 1, budget: budget{reads: 1, writes: 2}},
	}},
	{"large", []scope{
		{name: "two reads", timeout: 4, ping: 1, late: 1, under: 2, budget: budget{reads: 2, writes: 2}},
		{name: "three writes", timeout: 4, ping: 1, late: 1, under: 2, budget: budget{reads: 1, writes: 3}},
		{name: "a finer tick", timeout: 8, ping: 2, late: 1, under: 2, budget: budget{reads: 1, writes: 2}},
		{name: "a reconnect amid requests", timeout: 4, ping: 1, late: 1, under: 2, budget: budget{reads: 1, writes: 2, reconnects: 1}},
		{name: "all at once", timeout: 4, ping: 1, late: 1, under: 2, budget: budget{reads: 1, writes: 2, reconnects: 1, leaders: 1, suspends: 1}},
	}},
}

func TestNoScheduleBreaksTheTrust(t *testing.T) {
	for _, all := range scopes {
		for _, s := range all.scopes {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				begun := time.Now()
				out := explore(s, present{new(Window)})
				require.Empty(t, out.schedule, strings.Join(out.schedule, "\n"))
				t.Logf("%d states, schedules of up to %d T, in %v", out.states, out.longest/s.timeout, time.Since(begun))
			})
		}
		if all.size == *largest {
			break
		}
	}
}

// former is the rule that one acknowledged write proves what was answered a lag
// before it was sent.
type former struct{ *Window }

func (f former) clone() rule { return former(present(f).clone().(present)) }

func (f former) state(add func(time.Time, bool)) { present(f).state(add) }

func (f former) Answer(sent, came time.Time, write bool) (opened bool) {
	f.keep(answer{sent, came, false})
	if write {
		f.base = later(f.base, f.attached)
		f.advance(sent.Add(-f.lag))
	}
	return false
}

func TestTheModelFindsWhatTheFormerRuleMissed(t *testing.T) {
	out := explore(scope{timeout: 8, ping: 2, under: 2, budget: budget{reads: 1, writes: 1}}, former{new(Window)})
	require.NotEmpty(t, out.schedule)
	t.Logf("after %d states:\n%s", out.states, strings.Join(out.schedule, "\n"))
}

func TestTheModelFindsALagThatIsShorterThanTheLeaderIsLate(t *testing.T) {
	out := explore(scope{timeout: 4, ping: 1, late: 1, lag: 1, under: 2, budget: budget{reads: 1, writes: 2}}, present{new(Window)})
	require.NotEmpty(t, out.schedule)
	t.Logf("after %d states:\n%s", out.states, strings.Join(out.schedule, "\n"))
}
