package doublebarrier_test

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

var schedules = flag.Int("schedules", 150, "how many random schedules to try")

// chance decides by seed and by what identifies a request, so that the same
// seed gives the same schedule but for what happens in the same instant.
type chance struct{ seed uint64 }

func (c chance) of(percent int, salt string, parts ...int64) bool {
	h := fnv.New64a()
	fmt.Fprint(h, c.seed, salt, parts)
	return h.Sum64()%100 < uint64(percent)
}

// shake makes the server a bad one: every request may be late, its reply and
// its events too, and some are lost before or after they were carried out. All
// of it depends on the seed, and so does in which order things happen.
func (c chance) shake(srv *zkembed.Server) (lost []*zkembed.Fault) {
	strike := func(percent int, salt string, a zkembed.Action, ops ...zkembed.Op) *zkembed.Fault {
		return srv.Inject(zkembed.Match{Ops: ops, Func: func(r zkembed.Request) bool {
			return c.of(percent, salt, r.Session, int64(r.Xid), int64(r.Op))
		}}, a)
	}
	writes := []zkembed.Op{zkembed.OpCreate, zkembed.OpMulti, zkembed.OpSetData, zkembed.OpDelete}
	lost = append(lost,
		strike(1, "drop", zkembed.Drop(), writes...),
		strike(1, "lose", zkembed.LoseReply(), writes...))
	for _, d := range []time.Duration{3, 11, 37, 90} {
		d *= time.Millisecond
		strike(12, fmt.Sprint("request", d), zkembed.Delay(d), append(writes, zkembed.OpGetData, zkembed.OpExists, zkembed.OpGetChildren2)...)
		strike(8, fmt.Sprint("reply", d), zkembed.DelayReply(d), append(writes, zkembed.OpGetData)...)
	}
	srv.Inject(zkembed.Match{Func: func(r zkembed.Request) bool {
		return c.of(25, "event", r.Session, time.Now().UnixMilli())
	}}, zkembed.DelayEvents(60*time.Millisecond))
	return lost
}

// TestEveryScheduleKeepsThePromises plays small barriers under all kinds of
// schedules: replies, events and requests come in another order with each seed,
// some servers lag behind, replies are lost, and members die, give up and come
// back all the time.
func TestEveryScheduleKeepsThePromises(t *testing.T) {
	var struck [fates]int
	lost := 0
	for seed := range uint64(*schedules) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b bubble) {
				c, r := chance{seed}, rand.New(rand.NewPCG(seed, 0))
				n := 1 + r.IntN(5)
				w := (&workers{n: n, rounds: 8, pace: 80 * time.Millisecond}).in(b)
				for f := diesWaiting; f < fates; f++ {
					w.odds[f] = r.IntN(60)
				}
				w.open = func() *coord.Client {
					client := b.Open()
					if id := client.SessionID(); c.of(30, "lag", id) {
						b.Server.AddFollower(time.Duration(id%97)*time.Millisecond, id)
					}
					return client
				}
				w.apart = func(client *coord.Client) bool { return c.of(50, "apart", client.SessionID()) }
				faults := c.shake(b.Server)
				w.run(n+r.IntN(n+3), seed)
				w.check(t, n)
				for f, times := range w.struck {
					struck[f] += times
				}
				for _, f := range faults {
					lost += f.Fired()
				}
			})
		})
	}
	t.Log(struck, lost)
	for f, times := range struck {
		require.NotZero(t, times, "no worker that %s", fateNames[f])
	}
	require.NotZero(t, lost)
}
