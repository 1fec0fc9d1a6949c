package simulate

import (
	"context"
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/internal/proofs/workload"
	"github.com/zkcoord/zkcoord/zkembed"
)

// trouble is one kind of fault. do begins it, and returns how long it is to
// last, and how to end it, which may be nil. The end returns how often the
// fault happened.
type trouble struct {
	name   string
	weight int
	do     func(d *driver) (lasts time.Duration, end func() int)
}

// outage draws how long a cut lasts: often short, sometimes longer than T.
func (d *driver) outage() time.Duration {
	if workload.Chance(d.r, 0.25) {
		return d.part(d.r, 1.1, 2.2)
	}
	return d.part(d.r, 0.02, 0.9)
}

// cutOff is a partition.
func cutOff(direction zkembed.Direction) func(d *driver) (time.Duration, func() int) {
	return func(d *driver) (time.Duration, func() int) {
		lasts := d.outage()
		p := d.srv.Partition(zkembed.Cut{
			Direction: direction, Sessions: d.some(), NewConns: zkembed.NewConns(d.r.IntN(3)),
		})
		begun := time.Now()
		return lasts, func() int {
			p.Heal()
			if !p.Struck() {
				return 0
			}
			if time.Since(begun) > d.timeout {
				d.count(d.faults, "partition, longer than T", 1)
			}
			return 1
		}
	}
}

var requests = [][]zkembed.Op{
	nil,
	{zkembed.OpCreate, zkembed.OpCreate2, zkembed.OpCreateContainer},
	{zkembed.OpCreate},
	{zkembed.OpDelete},
	{zkembed.OpDelete},
	{zkembed.OpMulti},
	{zkembed.OpGetChildren, zkembed.OpGetChildren2},
	{zkembed.OpGetData},
	{zkembed.OpSetData},
	{zkembed.OpPing},
	{zkembed.OpCloseSession},
}

// inject makes some requests fail. The action comes with a condition on the
// requests; nil stands for all.
func inject(
	action func(d *driver) (zkembed.Action, func(zkembed.Request) bool),
) func(d *driver) (time.Duration, func() int) {
	return func(d *driver) (time.Duration, func() int) {
		m := zkembed.Match{
			Ops: requests[d.r.IntN(len(requests))], Skip: d.r.IntN(3), Times: 1 + d.r.IntN(3),
		}
		if ids := d.some(); len(ids) > 0 {
			m.Session = ids[0]
		}
		var act zkembed.Action
		act, m.Func = action(d)
		f := d.srv.Inject(m, act)
		return d.part(d.r, 0.2, 2), func() int {
			f.Remove()
			return f.Fired()
		}
	}
}

func plain(a zkembed.Action) func(*driver) (zkembed.Action, func(zkembed.Request) bool) {
	return func(*driver) (zkembed.Action, func(zkembed.Request) bool) { return a, nil }
}

// lateBy makes an action of a random delay.
func lateBy(action func(time.Duration) zkembed.Action) func(*driver) (zkembed.Action, func(zkembed.Request) bool) {
	return func(d *driver) (zkembed.Action, func(zkembed.Request) bool) {
		return action(d.part(d.r, 0.001, 0.7)), nil
	}
}

// muchLater is a request that a server passes on when its client has long gone
// to another.
func muchLater(d *driver) (zkembed.Action, func(zkembed.Request) bool) {
	return zkembed.CarryOutLate(d.part(d.r, 0.05, 1.2)), func(r zkembed.Request) bool {
		return !slices.ContainsFunc(r.Paths, defenceless)
	}
}

// defenceless reports whether the recipes say that they cannot undo a late
// creation or deletion of the node: see packages barrier, doublebarrier and
// group.
func defenceless(path string) bool {
	return path == "/gate" || strings.HasPrefix(path, "/party/") || strings.HasPrefix(path, "/group/members/")
}

// restart takes the server down for a time.
func restart(lo, hi float64) func(d *driver) (time.Duration, func() int) {
	return func(d *driver) (time.Duration, func() int) {
		if !d.down.CompareAndSwap(false, true) {
			return nothing()
		}
		d.srv.Stop()
		begun := time.Now()
		return d.part(d.r, lo, hi), func() int {
			d.srv.Resume()
			d.down.Store(false)
			return workload.Times(lo <= 1 || time.Since(begun) >= d.timeout) // or the end came before
		}
	}
}

func slow(d *driver) (time.Duration, func() int) {
	s := d.station()
	s.slow.Store(int64(d.part(d.r, 0.001, 0.08)))
	before := s.slowed.Load()
	return d.part(d.r, 0.5, 2), func() int {
		s.slow.Store(0)
		return workload.Times(s.slowed.Load() > before)
	}
}

// expired is the recorded cause of a loss when the driver ends the session.
const expired = "session expired by the driver"

func expire(d *driver) (time.Duration, func() int) {
	s := d.station()
	id := s.session()
	if id == 0 {
		return nothing()
	}
	d.mu.Lock()
	d.ended[id] = time.Now()
	d.mu.Unlock()
	s.broken("", 0, expired)
	if d.srv.ExpireSession(id) != nil {
		return nothing()
	}
	return atOnce(1)
}

// toOne does something to a client's session.
func toOne(do func(*zkembed.Server, int64) error) func(d *driver) (time.Duration, func() int) {
	return func(d *driver) (time.Duration, func() int) {
		if id := d.station().session(); id == 0 || do(d.srv, id) != nil {
			return nothing()
		}
		return atOnce(1)
	}
}

// toAll does something that counts how often it has happened.
func toAll(do func(*zkembed.Server) int) func(d *driver) (time.Duration, func() int) {
	return func(d *driver) (time.Duration, func() int) { return atOnce(do(d.srv)) }
}

// leave closes a client and opens another in its place. A client that crashes
// sends no farewell: the server learns of it only by its silence.
func leave(crash bool) func(d *driver) (time.Duration, func() int) {
	return func(d *driver) (time.Duration, func() int) {
		s := d.station()
		id := s.session()
		if s.steady || id == 0 {
			return nothing()
		}
		c := s.take()
		if c == nil {
			return nothing()
		}
		lasts := time.Duration(0)
		var p *zkembed.Partition
		if crash {
			lasts = d.part(d.r, 0.1, 1.5)
			p = d.srv.Partition(zkembed.Cut{Sessions: []int64{id}})
		} else {
			s.broken("", 0, "client closed")
		}
		closed := make(chan struct{})
		d.running.Go(func() {
			defer close(closed)
			begun := time.Now()
			if err := c.Close(context.Background()); err != nil {
				d.violated("%s: close: %v", s.name, err)
			}
			if took := time.Since(begun); took > 10*time.Second+d.timeout/2 { // a slow client's own packets take long
				d.violated("%s: close took %v", s.name, took)
			}
		})
		d.running.Go(func() {
			pause(d.part(rand.New(rand.NewPCG(uint64(id), 0)), 0, 0.5), d.calm)
			s.open(d.base)
		})
		return lasts, func() int {
			if p != nil {
				p.Heal()
			}
			<-closed
			return 1
		}
	}
}

// troubles are all there are, and how often each is chosen.
var troubles = append([]trouble{
	{"partition both ways", 6, cutOff(zkembed.Both)},
	{"partition to the server", 5, cutOff(zkembed.ToServer)},
	{"partition to the clients", 5, cutOff(zkembed.ToClient)},
	{"request lost", 10, inject(plain(zkembed.Drop()))},
	{"reply lost after apply", 12, inject(plain(zkembed.LoseReply()))},
	{"request late", 6, inject(lateBy(zkembed.Delay))},
	{"request carried out late", 6, inject(muchLater)},
	{"reply late", 6, inject(lateBy(zkembed.DelayReply))},
	{"event late", 6, inject(lateBy(zkembed.DelayEvents))},
	{"server hangs", 4, inject(plain(zkembed.Hang()))},
	{"throttled", 4, inject(plain(zkembed.ReplyError(zkembed.CodeThrottledOp)))},
	{"restart, short", 5, restart(0.02, 0.6)},
	{"restart, longer than T", 2, restart(1.1, 1.8)},
	{"follower lags", 6, lag},
	{"follower isolated longer than T", 5, isolate},
	{"follower's link silent to the leader", 3, silent(zkembed.ToLeader)},
	{"follower's link silent to the follower", 3, silent(zkembed.ToFollower)},
	{"follower's link broken", 14, broken},
	{"session expired", 5, expire},
	{"connection cut", 6, toOne((*zkembed.Server).DropConn)},
	{"all connections cut", 3, toAll((*zkembed.Server).DropConns)},
	{"session moved", 4, toOne((*zkembed.Server).MoveSession)},
	{"client slow", 5, slow},
	{"client closed", 3, leave(false)},
	{"client crashed", 4, leave(true)},
	{"holder's node deleted", 7, erase(true)},
	{"waiter's node deleted", 4, erase(false)},
	{"foreign child", 4, litter},
	{"container reaped", 4, toAll((*zkembed.Server).Reap)},
	{"revoked", 4, revoke},
}, slices.Concat(shardsTroubles, clockTroubles)...)

// focus is what every seed has, and has trouble with often.
var focus = flag.String("focus", "", `what every seed has, and has trouble with often: "shards" or "clocks"`)

// often is how often the trouble is chosen.
func (t trouble) often() int {
	of := map[string][]trouble{"shards": shardsTroubles, "clocks": clockTroubles}
	if slices.ContainsFunc(of[*focus], func(s trouble) bool { return s.name == t.name }) {
		return 10 * t.weight
	}
	return t.weight
}
