package simulate

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/internal/proofs/workload"
	"github.com/zkcoord/zkcoord/zkembed"
)

// target picks a contender's node: one that holds, or one that waits.
func (d *driver) target(holds bool) (zkembed.Node, bool) {
	nodes := slices.DeleteFunc(d.srv.Nodes(), func(n zkembed.Node) bool {
		return n.Stat.EphemeralOwner == 0 || !strings.Contains(n.Path, "_c_") && !strings.Contains(n.Path, "__") ||
			defenceless(n.Path)
	})
	first := map[string]zkembed.Node{}
	for _, n := range nodes {
		dir := n.Path[:strings.LastIndexByte(n.Path, '/')]
		if f, ok := first[dir]; !ok || n.Stat.Czxid < f.Stat.Czxid {
			first[dir] = n
		}
	}
	nodes = slices.DeleteFunc(nodes, func(n zkembed.Node) bool {
		return holds != (first[n.Path[:strings.LastIndexByte(n.Path, '/')]].Path == n.Path)
	})
	guards := slices.DeleteFunc(slices.Clone(nodes), func(n zkembed.Node) bool {
		return !slices.Contains(guarded, n.Path[:strings.LastIndexByte(n.Path, '/')])
	})
	if len(guards) > 0 && workload.Chance(d.r, 0.7) {
		nodes = guards // of holders that write
	}
	if len(nodes) == 0 {
		return zkembed.Node{}, false
	}
	return nodes[d.r.IntN(len(nodes))], true
}

// meddle runs f with the time that the administrator's client has.
func (d *driver) meddle(f func(ctx context.Context) error) (time.Duration, func() int) {
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), d.timeout/2)
	d.running.Go(func() { done <- f(ctx) })
	return 0, func() int {
		defer cancel()
		return workload.Times(<-done == nil)
	}
}

// erase deletes the node of a holder or of a waiter, which often learns of it
// late.
func erase(holds bool) func(d *driver) (time.Duration, func() int) {
	return func(d *driver) (time.Duration, func() int) {
		n, ok := d.target(holds)
		if !ok {
			return nothing()
		}
		d.deletes(n.Path, n.Stat.Czxid, n.Stat.EphemeralOwner)
		told := func() {}
		if workload.Chance(d.r, 0.5) {
			late := zkembed.DelayEvents(d.part(d.r, 0.05, 0.7))
			told = d.srv.Inject(zkembed.Match{Session: n.Stat.EphemeralOwner, PathPrefix: n.Path}, late).Remove
		}
		lasts, undo := d.meddle(func(ctx context.Context) error {
			_, stat, err := d.admin.client.Get(ctx, n.Path)
			if err != nil || stat.Czxid != n.Stat.Czxid {
				return cmp.Or(err, coord.ErrNoNode)
			}
			return d.admin.client.Delete(ctx, n.Path, stat.Version)
		})
		return lasts, func() int {
			defer told()
			return undo()
		}
	}
}

// deletes notes that the driver is about to delete a node of a claim.
func (d *driver) deletes(node string, czxid, owner int64) {
	d.mu.Lock()
	d.deleted[node] = erased{czxid, time.Now()}
	d.mu.Unlock()
	recipe, _, _ := strings.Cut(node[1:], "/")
	key := workload.KeyOf("/"+recipe, node)
	for _, s := range d.stations {
		if s.session() == owner {
			s.broken(key, czxid, "node deleted by the driver")
		}
	}
}

// strangers are names of children that belong to no recipe, or not to this
// dialect.
var strangers = []string{
	"garbage", "_c_short", "_c_", "lock-0000000001", "_c_0123456789abcdef0123456789abcdef-lock-", "x__lock__0000000000",
	"ünïcode-0000000002",
}

// sequential is the end of a name that is a contender's, if of no recipe that
// is known.
var sequential = regexp.MustCompile(`\d{10}$`)

// litter makes a child that does not belong there, and takes it away again.
func litter(d *driver) (time.Duration, func() int) {
	name := strangers[d.r.IntN(len(strangers))]
	dir := d.dirs[d.r.IntN(len(d.dirs))]
	if workload.Chance(d.r, 0.2) {
		name = workload.Foreigners[d.dialect]
	}
	foreign := name == workload.Foreigners[d.dialect] || sequential.MatchString(name)
	excused := foreign && !d.ignoresForeigners(dir)
	if excused {
		d.excuseForeign(dir, time.Now().Add(time.Hour))
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.timeout/2)
	made := make(chan error, 1)
	d.running.Go(func() { made <- workload.Litter(ctx, d.admin.client, dir+"/"+name) })
	return d.part(d.r, 0.1, 1), func() int {
		defer cancel()
		err := <-made
		if gone := workload.RemoveLitter(context.Background(), d.admin.client, dir+"/"+name); gone != nil {
			d.violated("the foreign child cannot be deleted: %v", gone)
		}
		if excused {
			d.excuseForeign(dir, time.Now().Add(2*d.timeout)) // a server may lag, or an answer come late
		}
		return workload.Times(err == nil)
	}
}

// ignoresForeigners reports whether the recipe in a directory ignores foreign
// contenders, as a double barrier does from its first use on.
func (d *driver) ignoresForeigners(dir string) bool {
	isReady := func(n zkembed.Node) bool { return n.Path == "/party/ready" }
	return dir == "/party" && slices.ContainsFunc(d.srv.Nodes(), isReady)
}

// excuseForeign notes until when a foreign contender may be met in a directory.
func (w *world) excuseForeign(dir string, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.foreign[dir] = until
}

// hadForeigners reports whether there may have been a contender of another
// dialect at the path that an error is about.
func (w *world) hadForeigners(err error) bool {
	var about *coord.OpError
	if !errors.As(err, &about) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for dir, until := range w.foreign {
		if strings.HasPrefix(dir, about.Path) && time.Now().Before(until) {
			return true
		}
	}
	return false
}

func revoke(d *driver) (time.Duration, func() int) {
	n, ok := d.target(workload.Chance(d.r, 0.7))
	if claims := d.claims(); len(claims) > 0 && workload.Chance(d.r, 0.3) {
		n, ok = claims[d.r.IntN(len(claims))], true
	}
	if !ok {
		return nothing()
	}
	return d.meddle(func(ctx context.Context) error { return inspect.Revoke(ctx, d.admin.client, n.Path) })
}

// claims are the nodes of consumers that have an item of the queue.
func (d *driver) claims() []zkembed.Node {
	return slices.DeleteFunc(d.srv.Nodes(), func(n zkembed.Node) bool {
		return n.Stat.EphemeralOwner == 0 || !strings.HasPrefix(n.Path, "/queue/taken/")
	})
}
