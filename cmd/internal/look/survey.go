package look

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/coord/semaphore"
)

// Surveyed is where a survey looks, and how far.
type Surveyed struct {
	Most int    `default:"100000" placeholder:"N" help:"Look at so many nodes at most, and say how many were left out."`
	Path string `arg:"" predictor:"path" optional:"" default:"/" help:"Where to look: the path itself and all below it."`
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

// Survey is what there is at a path and below.
type Survey struct {
	Path   string
	Absent bool // there is no node at the path
	Extent

	mu      sync.Mutex
	Recipes []Report // by path

	Certain, Possible []Circle
}

// Extent is how far a survey has come.
type Extent struct {
	Looked int      `json:"looked_at"` // nodes
	Left   int      `json:"left_out"`  // nodes that were not looked at, with what is below them
	Hidden []string `json:"hidden"`    // nodes that must not be listed
}

// Surveyors is how many requests of a survey are under way at most.
const Surveyors = 32

// Look surveys level by level: what is left out is deepest, also when the
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
				if below[i], err = s.visit(ctx, client, path); err != nil && parent.Err() != nil {
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
func (s *Survey) visit(ctx context.Context, client *coord.Client, path string) ([]string, error) {
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
	r := newReport(path)
	if path == "/" { // which is no place for a recipe
		return beneath(client, path, names), nil
	}
	if mayBeRecipe(names) {
		var changed bool
		if r, changed, err = lookAt(ctx, client, conn.NodePath(path), names); err == nil && changed {
			r, err = Examine(ctx, client, conn.NodePath(path))
		}
		names = slices.DeleteFunc(names, func(name string) bool { return r.isOwn(name) && !r.hasLocks(name) })
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
	return beneath(client, path, names), nil
}

// beneath are the paths of the names below path, without the servers' own.
func beneath(client *coord.Client, path string, names []string) []string {
	var paths []string
	queues := map[string]bool{} // of Kazoo's semaphores
	for _, name := range names {
		below := strings.TrimSuffix(path, "/") + "/" + name
		paths = append(paths, below)
		queues[semaphore.LayoutOf(coord.Kazoo, below).Queue.Dir] = true
	}
	return slices.DeleteFunc(paths, func(path string) bool {
		return path == "/zookeeper" && client.Chroot() == "" || queues[path]
	})
}

// mayBeRecipe reports whether a node with these names below it may be a
// recipe's.
func mayBeRecipe(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		for _, of := range parts {
			if name == of[0] {
				return true
			}
		}
		return len(LineOf([]string{name})) > 0 || isKazooLease(name) || isMember(name)
	})
}

// Waits reports whether a contender waits for others. What waits for a lease at
// a semaphore is the place in its queue, not the lease that the first there has
// made.
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

// oddity is what an operator should look at, and what to do about it.
type oddity struct{ Found, Do string }

// Findings are what is odd about a recipe.
func (r Report) Findings() (odd []oddity) {
	note := func(do, format string, args ...any) { odd = append(odd, oddity{fmt.Sprintf(format, args...), do}) }
	if n := r.Unknown(); n > 0 && r.Dialect == "mixed" {
		note("give each recipe a path of its own: where they stand first, this program's claims are refused, and where they come later, two may hold",
			"%s of an unknown recipe beside others", term.Plural(n, "contender is", "contenders are"))
	} else if r.Dialect == "mixed" {
		note("one path, one dialect: let the programs agree, or give one of them another path", "two dialects, which do not see each other")
	} else if r.Kind == "mixed" {
		note("give each recipe a path of its own", "several recipes at one path")
	}
	orphans, asked := 0, 0
	for _, c := range r.Contenders {
		if c.Orphan {
			orphans++
		}
		if c.Revoked {
			asked++
		}
	}
	if orphans > 0 {
		note("a program made the node persistent, or a person did: delete it, if nothing depends on it",
			"%s to no session, and will never go by %s", term.Plural(orphans, "contender belongs", "contenders belong"), term.Pick(orphans, "itself", "themselves"))
	}
	if asked > 0 {
		note("the holder may not heed it: the verb break takes it by force", "%d asked to give up", asked)
	}
	if len(r.deadlock) > 0 {
		note("\""+term.Program+" graph\" shows the circle; break one of its locks", "deadlock: a circle over %s", strings.Join(r.deadlock, ", "))
	}
	if r.Left < fewLeft {
		note("move to a fresh path before the counter is full: claims are refused then",
			"%d of %d sequence numbers are used up; use another path before the rest is", math.MaxInt32-r.Left, math.MaxInt32)
	}
	if r.Round != nil && r.Round.Open {
		if gone := r.Round.Members - r.Round.Inside - r.Round.Finished; gone > 0 {
			note("members have died; the round ends when the others have finished", "%s gone from the open round", term.Plural(gone, "member is", "members are"))
		}
	}
	if r.Queue != nil && r.Queue.orphans() > 0 {
		note("a program made the claim persistent, or a person did: break with --node takes the item back",
			"%s in the hand of no session, and will never come back by %s",
			term.Plural(r.Queue.orphans(), "item is", "items are"), term.Pick(r.Queue.orphans(), "itself", "themselves"))
	}
	if r.Queue != nil && r.Queue.often() > 0 {
		note("its consumers do not move it to the dead letters (receive --dead, WithDeadLetters): queue bury or drop takes it out",
			"%s %d times or more", term.Plural(r.Queue.often(), "item was delivered", "items were delivered"), TooOften)
	}
	if r.Queue != nil && r.Queue.Dead > 0 {
		note("look at them: "+term.Program+" queue dead; the path with /dead is a queue, too", "%s", term.Plural(r.Queue.Dead, "dead letter", "dead letters"))
	}
	if r.ahead != "" {
		note("set the clocks right that are wrong; then "+term.Program+" cron --rewind has the schedule go on", "%s", r.ahead)
	}
	return odd
}

// Oddities are what is odd, without what to do.
func (r Report) Oddities() []string {
	texts := []string{}
	for _, o := range r.Findings() {
		texts = append(texts, o.Found)
	}
	return texts
}

// DemoRoot is what the demos' nodes are below.
const DemoRoot = "/coorddemo/"

func (s Extent) String() string {
	text := term.Plural(s.Looked, "node was", "nodes were") + " looked at"
	if s.Left > 0 {
		text += fmt.Sprintf("; left out: %s, with what is below (--most, --connect-timeout)", term.Plural(s.Left, "node", "nodes"))
	}
	if len(s.Hidden) > 0 {
		hidden := make([]string, len(s.Hidden))
		for i, path := range s.Hidden {
			hidden[i] = term.Plain(path)
		}
		text += "; not to be listed: " + strings.Join(hidden, ", ")
	}
	return text
}
