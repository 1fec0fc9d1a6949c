package look

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/internal/layout"
)

// Surveyed says where a survey looks, and how far.
type Surveyed struct {
	Dialect coord.Dialect `kong:"-"` // described; of lines that belong to no other recipe, or ""
	Most    int           `default:"100000" placeholder:"N" help:"Look at N nodes at most."`
	Path    string        `arg:"" predictor:"path" optional:"" default:"/" help:"Where to look: the path itself and all below it."`
}

// Validate is called by kong.
func (v Surveyed) Validate() error {
	switch {
	case v.Most < 1:
		return fmt.Errorf("--most %d: it must be at least 1", v.Most)
	case v.Path == "/":
		return nil
	}
	return conn.NodePath(v.Path).Validate()
}

// Survey has the recipes at a path and below it.
type Survey struct {
	Path   string
	Absent bool // there is no node at the path
	Extent

	mu      sync.Mutex
	Recipes []Report // by path

	Certain, Possible []Circle
}

// Extent says how far a survey has come.
type Extent struct {
	Looked int      `json:"looked_at"` // nodes
	Left   int      `json:"left_out"`  // nodes that were not looked at, with what is below them
	Hidden []string `json:"hidden"`    // nodes that the ACL does not let us list
}

// Surveyors is how many requests of a survey are under way at most.
const Surveyors = 32

// Look surveys level by level: the deepest nodes are left out, also when the
// context ends meanwhile. A recipe's own nodes are not looked at one by one.
func (v Surveyed) Look(parent context.Context, client *coord.Client) (*Survey, error) {
	s := &Survey{Path: v.Path, Extent: Extent{Hidden: []string{}}}
	for level := []string{v.Path}; len(level) > 0; {
		if room := v.Most - s.Looked; len(level) > room {
			s.Left += len(level) - room
			level = level[:room]
		}
		s.Looked += len(level)
		below := make([][]string, len(level))
		group, ctx := errgroup.WithContext(parent)
		group.SetLimit(Surveyors)
		for i, path := range level {
			group.Go(func() (err error) {
				if below[i], err = s.visit(ctx, client, v.Dialect, path); err != nil && parent.Err() != nil {
					s.leaveOut()
					return nil
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return nil, err
		}
		if parent.Err() != nil && s.Looked == 0 {
			return nil, recipe.Ended(parent)
		}
		level = slices.Concat(below...)
	}
	slices.SortFunc(s.Recipes, func(a, b Report) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(s.Hidden)
	s.findCircles(parent, client)
	return s, nil
}

func (s *Survey) leaveOut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Looked--
	s.Left++
}

// visit reports the recipe at a path, if there is one, and returns the paths
// below that may be recipes.
func (s *Survey) visit(ctx context.Context, client *coord.Client, d coord.Dialect, path string) ([]string, error) {
	names, err := client.Children(ctx, path)
	switch {
	case errors.Is(err, coord.ErrNoNode):
		s.mu.Lock()
		defer s.mu.Unlock()
		s.Absent = s.Absent || path == s.Path
		return nil, nil
	case errors.Is(err, coord.ErrNoAuth):
		s.mu.Lock()
		defer s.mu.Unlock()
		s.Hidden = append(s.Hidden, path)
		return nil, nil
	case err != nil:
		return nil, err
	}
	r, lines := newReport(path), []string(nil) // the directories of a ledger's jobs
	if path == "/" {                           // the root is no place for a recipe
		return beneath(client, path, names), nil
	}
	if mayBeRecipe(names) {
		var changed bool
		if r, changed, err = lookAt(ctx, client, d, conn.NodePath(path), names); err == nil && changed {
			r, err = Examine(ctx, client, d, conn.NodePath(path))
		}
		names = slices.DeleteFunc(names, func(name string) bool { return r.isOwn(name) && !r.hasLocks(name) })
		if r.Ledger != nil {
			lines = r.Ledger.lines
		}
	} else if len(names) == 0 {
		err = r.asBarrier(ctx, client, conn.NodePath(path))
	}
	if err != nil && !errors.Is(err, coord.ErrNoNode) && !errors.Is(err, coord.ErrNoAuth) {
		return nil, err
	}
	if r.Kind != "" {
		s.mu.Lock()
		s.Recipes = append(s.Recipes, r)
		s.mu.Unlock()
	}
	return append(beneath(client, path, names), lines...), nil
}

// beneath are the paths of the names below path, without the servers' own.
func beneath(client *coord.Client, path string, names []string) []string {
	var paths []string
	queues := map[string]bool{} // of Kazoo's semaphores
	for _, name := range names {
		below := strings.TrimSuffix(path, "/") + "/" + name
		paths = append(paths, below)
		queues[layout.SemaphoreAt(coord.Kazoo, below).Queue.Dir] = true
	}
	return slices.DeleteFunc(paths, func(path string) bool {
		return path == "/zookeeper" && client.Info().Chroot == "" || queues[path]
	})
}

// mayBeRecipe reports whether a node with these names below it may be a
// recipe's.
func mayBeRecipe(names []string) bool {
	return mayBeMore(names) || slices.ContainsFunc(names, func(name string) bool {
		return len(LineOf([]string{name})) > 0 || isKazooLease(name) || isMember(name)
	})
}

// Waits reports whether a contender waits for others. At a semaphore, the node
// in the queue waits, not the lease that the first of the queue has made.
func (r Report) Waits(c Contender) bool {
	return c.State == "waits" && (r.Kind != SlotsKind || c.Kind != semaphore.Kind)
}

// Waiting counts the contenders that wait.
func (r Report) Waiting() (n int) {
	for _, c := range r.Contenders {
		if r.Waits(c) {
			n++
		}
	}
	return n
}

// DemoRoot is the path below which demos make their nodes.
const DemoRoot = "/coorddemo/"

func (s Extent) String() string {
	text := term.Plural(s.Looked, "node was", "nodes were") + " looked at"
	if s.Left > 0 {
		text += fmt.Sprintf("; left out: %s, with what is below (--most, --connect-timeout)",
			term.Plural(s.Left, "node", "nodes"))
	}
	if len(s.Hidden) > 0 {
		hidden := make([]string, len(s.Hidden))
		for i, path := range s.Hidden {
			hidden[i] = term.Plain(path)
		}
		text += "; may not be listed: " + strings.Join(hidden, ", ")
	}
	return text
}

// Whole are the recipes, where a ledger has the contenders for its jobs, and
// shards have the contenders for their keys.
func (s *Survey) Whole() (whole []Report) {
	var keepers []int // of keys
	for _, r := range s.Recipes {
		of := slices.IndexFunc(keepers, func(i int) bool { return whole[i].HasKey(r.Path) })
		if of < 0 {
			if r.Ledger != nil || r.Shards != nil {
				keepers = append(keepers, len(whole))
			}
			whole = append(whole, r)
			continue
		}
		keeper := &whole[keepers[of]]
		keeper.Contenders = append(slices.Clip(keeper.Contenders), r.Contenders...)
		keeper.deadlock = append(slices.Clip(keeper.deadlock), r.deadlock...)
		keeper.Left = min(keeper.Left, r.Left)
	}
	return whole
}

// HasKey reports whether the path is the lock of one of the recipe's own keys.
func (r Report) HasKey(path string) bool {
	keys := layout.Once[0]
	if r.Shards != nil {
		keys = layout.Shards[2]
	}
	return (r.Ledger != nil || r.Shards != nil) && strings.HasPrefix(path, r.Path+"/"+keys+"/")
}
