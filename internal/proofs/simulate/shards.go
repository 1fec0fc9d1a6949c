package simulate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/shards"
	"github.com/zkcoord/zkcoord/internal/proofs/workload"
	"github.com/zkcoord/zkcoord/zkembed"
)

// shared is the members of the shards that stay until all faults are over, and
// the judge has seen every key owned.
type shared struct {
	names   []string
	ctx     context.Context
	stop    context.CancelFunc
	running sync.WaitGroup
}

func (w *world) populateShards(r *rand.Rand, keys int) {
	w.shared.ctx, w.shared.stop = context.WithCancel(w.base)
	opts := []shards.Option{}
	if workload.Chance(r, 0.5) {
		opts = append(opts, shards.MovesAtATime(1+r.IntN(2)))
	}
	if workload.Chance(r, 0.3) {
		opts = append(opts, shards.Cooldown(w.part(r, 0, 2)))
	}
	for i := range 2 + r.IntN(2) {
		st := w.stations[r.IntN(len(w.stations))]
		k := workload.NewWorker(st.site, fmt.Sprint("resident", i), "shards resident", "/shards", w.stream(1000+i), nil)
		w.shared.names = append(w.shared.names, k.Name)
		use := workload.Reside(keys, opts...)
		if i > 0 && workload.Chance(r, 0.3) {
			use = workload.Reside(0, opts...) // any list
		}
		w.shared.running.Go(func() { k.Work(w.shared.ctx, use) })
	}
}

// judgeShards waits until every key is owned, and every resident member is in,
// after the last fault; then they leave.
func (w *world) judgeShards() {
	if w.shared.names == nil {
		return
	}
	defer w.shared.running.Wait()
	defer w.shared.stop()
	// A function may take a session timeout to drain, and a moment more.
	limit := 2*w.timeout + 2*w.tick + 4*time.Second
	var missing string
	for {
		if missing = w.notOwned(); missing == "" {
			w.count(w.counts, "shards seen with all keys owned", 1)
			return
		}
		if time.Since(w.repaired) > limit {
			break
		}
		time.Sleep(w.timeout / 100)
	}
	w.noteTree()
	w.violated("shards: %v after the last fault %s", time.Since(w.repaired), missing)
}

// notOwned says which key has no owner, or which member is not in; "" if none.
func (w *world) notOwned() string {
	s, err := shards.New(w.admin.client, "/shards")
	if err != nil {
		return err.Error()
	}
	plan, all, err := s.Status(w.base)
	if err != nil {
		return err.Error()
	}
	for _, is := range all {
		if is.Life != shards.LifeOwned && is.Life != shards.LifeFailing {
			return fmt.Sprintf("%s is %s: %+v", is.Key, is.Life, is)
		}
	}
	for _, name := range w.shared.names {
		if !slices.ContainsFunc(plan.Members, func(m shards.Member) bool { return m.ID == name }) {
			return name + " is no member"
		}
	}
	return ""
}

// shardsTroubles are what is done to shards.
var shardsTroubles = []trouble{
	{"plan written over", 2, planWrittenOver},
	{"plan deleted", 2, planDeleted},
	{"keys set", 3, keysSet},
	{"shards deleted", 2, shardsDeleted},
	{"stranger in a key's line", 3, strangerInLine},
	{"rival of one ID", 3, rival},
}

// toShards makes a fault of something that is done to the shards, if there are
// any.
func toShards(f func(ctx context.Context, d *driver) error) func(d *driver) (time.Duration, func() int) {
	return func(d *driver) (time.Duration, func() int) {
		if d.shared.names == nil {
			return nothing()
		}
		return d.meddle(func(ctx context.Context) error { return f(ctx, d) })
	}
}

var rubbish = []string{"x", "", "{}", "null", `{"format":1}`, `{"format":1,"keys":["k0"],"owners":[0],"members":[{"id":"a","weight":-1}]}`}

func planWrittenOver(d *driver) (time.Duration, func() int) {
	data := rubbish[d.r.IntN(len(rubbish))]
	return toShards(func(ctx context.Context, d *driver) error {
		_, err := d.admin.client.Set(ctx, "/shards/plan", []byte(data), -1)
		return err
	})(d)
}

func planDeleted(d *driver) (time.Duration, func() int) {
	return toShards(func(ctx context.Context, d *driver) error { return d.admin.client.Delete(ctx, "/shards/plan", -1) })(d)
}

func keysSet(d *driver) (time.Duration, func() int) {
	keys := workload.KeyNames(workload.MostKeys)[d.r.IntN(3):][:1+d.r.IntN(3)]
	return toShards(func(ctx context.Context, d *driver) error {
		s, err := shards.New(d.admin.client, "/shards")
		if err == nil {
			err = s.SetKeys(ctx, keys...)
		}
		return err
	})(d)
}

// shardsDeleted deletes everything, as zkCli's deleteall does.
func shardsDeleted(d *driver) (time.Duration, func() int) {
	return toShards(func(ctx context.Context, d *driver) error {
		nodes := d.srv.Nodes()
		slices.SortFunc(nodes, func(a, b zkembed.Node) int { return strings.Count(b.Path, "/") - strings.Count(a.Path, "/") })
		for _, n := range nodes {
			if !strings.HasPrefix(n.Path, "/shards/") {
				continue
			}
			if n.Stat.EphemeralOwner != 0 {
				d.deletes(n)
			}
			err := d.admin.client.Delete(ctx, n.Path, -1)
			if err != nil && !errors.Is(err, coord.ErrNoNode) && !errors.Is(err, coord.ErrNotEmpty) {
				return err
			}
		}
		return nil
	})(d)
}

// strangerInLine has a key's line begin with a node that no member can ask, or
// another program hold the key's lock.
func strangerInLine(d *driver) (time.Duration, func() int) {
	if d.shared.names == nil {
		return nothing()
	}
	dir := fmt.Sprintf("/shards/keys/k%d", d.r.IntN(3))
	lasts := d.part(d.r, 0.1, 3)
	if workload.Chance(d.r, 0.5) {
		ctx, cancel := context.WithTimeout(context.Background(), lasts)
		held := make(chan bool, 1)
		d.running.Go(func() {
			m, err := lock.New(d.admin.client, dir)
			if err != nil {
				panic(err)
			}
			h, err := m.Acquire(ctx)
			if err == nil {
				pause(lasts, d.calm)
				err = h.Release(context.Background())
			}
			held <- err == nil
		})
		return lasts, func() int {
			defer cancel()
			cancel()
			return workload.Times(<-held)
		}
	}
	nodes := []string{foreigners[d.dialect], foreigners[coord.Curator], foreigners[coord.Kazoo]}
	node := path.Join(dir, nodes[d.r.IntN(len(nodes))])
	ctx, cancel := context.WithTimeout(context.Background(), d.timeout/2)
	made := make(chan error, 1)
	d.running.Go(func() { made <- d.admin.client.Create(ctx, node, nil) })
	return lasts, func() int {
		defer cancel()
		err := <-made
		gone := d.admin.client.Retry(context.Background(), func(ctx context.Context) error { return d.admin.client.Delete(ctx, node, -1) })
		if gone != nil && !errors.Is(gone, coord.ErrNoNode) {
			d.violated("the stranger in the line of %s cannot be deleted: %v", dir, gone)
		}
		return workload.Times(err == nil)
	}
}

// rival is another member with the ID of one that stays, for less than T.
func rival(d *driver) (time.Duration, func() int) {
	if d.shared.names == nil {
		return nothing()
	}
	id, lasts := d.shared.names[d.r.IntN(len(d.shared.names))], d.part(d.r, 0.05, 0.8)
	s, err := shards.New(d.admin.client, "/shards", shards.ID(id), shards.DrainTimeout(time.Second))
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lasts)
	owned := make(chan struct{}, workload.MostKeys)
	over := make(chan struct{})
	d.running.Go(func() {
		defer close(over)
		_ = s.Run(ctx, func(ctx context.Context, _ string, _ *coord.Hold) error {
			select {
			case owned <- struct{}{}:
			default:
			}
			select {
			case <-ctx.Done():
			case <-shards.Draining(ctx):
			}
			return nil
		})
	})
	return lasts, func() int {
		cancel()
		<-over
		return 1
	}
}
