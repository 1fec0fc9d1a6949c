package shards_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/shards"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// memberMain is a member in a process of its own. It says "has KEY" and "ends
// KEY" of its functions, and "KIND: KEY" of its events. It leaves when its
// standard input is closed. The function of the key "bad" fails.
func memberMain(args []string) {
	ctx := context.Background()
	c, err := coord.Open(ctx, args[0], coord.WithSessionTimeout(10*time.Second), coord.WithTick(zktest.DefaultTick))
	zktest.ExitOn(err)
	opts := []shards.Option{
		shards.ID(args[2]), shards.OnEvent(func(e shards.Event) { fmt.Printf("%s: %s\n", e.Kind, e.Key) }),
	}
	if len(args) > 3 {
		opts = append(opts, shards.Keys(args[3:]...))
	}
	s, err := shards.New(c, args[1], opts...)
	zktest.ExitOn(err)
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		zktest.ExitOn(s.Leave(ctx))
	}()
	zktest.ExitOn(s.Run(ctx, func(ctx context.Context, key string, _ coord.Held) error {
		fmt.Println("has", key)
		defer fmt.Println("ends", key)
		if key == "bad" {
			return errors.New("no luck")
		}
		select {
		case <-ctx.Done():
		case <-shards.Draining(ctx):
		}
		return nil
	}))
	zktest.ExitOn(c.Close(ctx))
}

// crew is members in processes of their own, and what they say.
type crew struct {
	*testing.T
	w     *zktest.World
	names []string // of the keys

	mu    sync.Mutex
	all   map[string]*zktest.ChildProcess
	has   map[string]string // the member of each key whose function runs
	last  map[string]string // the member of each key whose function ran last
	calls map[string]int    // of the function of each key
	said  map[string]int    // events
}

func newCrew(t *testing.T, w *zktest.World, keys ...string) *crew {
	c := &crew{
		T: t, w: w, names: keys, all: map[string]*zktest.ChildProcess{}, has: map[string]string{}, last: map[string]string{},
		calls: map[string]int{}, said: map[string]int{},
	}
	for i, id := range []string{"one", "two", "three"} {
		c.start(id, keys[:len(keys)*(1-min(i, 1))]...) // the first gives the list
		c.share(i + 1)
	}
	return c
}

func (c *crew) start(id string, keys ...string) {
	c.Helper()
	p := zktest.Child(c.T, "member", append([]string{c.w.ConnectString(), c.w.Path("shards"), id}, keys...)...)
	c.all[id] = p
	go func() {
		for line := range p.Lines() {
			c.hears(id, line)
		}
	}()
	c.Cleanup(func() { // leaves, so that nothing of it is left
		p.CloseStdin()
		p.ExitCode(2 * coordtest.Soon)
	})
}

func (c *crew) hears(id, line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	what, key, _ := strings.Cut(line, " ")
	switch {
	case what == "has":
		c.has[key], c.last[key] = id, id
		c.calls[key]++
	case what == "ends" && c.has[key] == id:
		delete(c.has, key)
	case what != "ends":
		c.said[line]++
	}
}

// restart restarts a member as a deployment does.
func (c *crew) restart(id string) {
	c.Helper()
	p := c.all[id]
	p.CloseStdin()
	require.Zero(c, p.ExitCode(coordtest.Soon))
	c.start(id)
}

// share waits until each of n members works for its share of the keys: for no
// more than any other, so that nothing is to be moved any more. A key whose
// function fails counts for the member that tries it; others that nobody can
// work for count for any.
func (c *crew) share(n int, without ...string) {
	c.Helper()
	zktest.Eventually(c.T, 2*coordtest.Soon, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		by := map[string]int{}
		for _, key := range c.names {
			id := c.has[key]
			if key == "bad" {
				id = c.last[key]
			}
			if id != "" {
				by[id]++
			} else if !slices.Contains(without, key) {
				return false
			}
		}
		return len(by) == n && slices.Max(slices.Collect(maps.Values(by))) == len(c.names)/n
	}, "%d members work for all keys but %q", n, without)
}

// says waits for an event.
func (c *crew) says(line string) {
	c.Helper()
	zktest.Eventually(c.T, coordtest.Soon, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.said[line] > 0
	}, "a member says %q", line)
}

// runs checks that no member has ended.
func (c *crew) runs() {
	c.Helper()
	for id, p := range c.all {
		select {
		case <-p.Exited():
			c.Errorf("%s has ended", id)
		default:
		}
	}
}

// counts is how often the functions of the keys were called.
func (c *crew) counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := map[string]int{}
	for _, key := range c.names {
		counts[key] = c.calls[key]
	}
	return counts
}

func numbered(n int) (keys []string) {
	for i := range n {
		keys = append(keys, "k"+strconv.Itoa(i))
	}
	return keys
}

// deleteAll is zkCli's deleteall.
func deleteAll(t *testing.T, conn *zk.Conn, path string) {
	t.Helper()
	names, _, err := conn.Children(path)
	if err == nil {
		for _, name := range names {
			deleteAll(t, conn, path+"/"+name)
		}
		err = conn.Delete(path, -1)
	}
	if !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNotEmpty) {
		require.NoError(t, err)
	}
}

// Three processes, of which the first gave the list and has gone.
func TestF71MembersOutliveTheirServersData(t *testing.T) {
	zktest.EachPrivate(t, func(t *testing.T, w *zktest.World) {
		c := newCrew(t, w, numbered(12)...)
		c.restart("one")
		c.share(3)
		for range 2 {
			deleteAll(t, w.Admin(), w.Path("shards"))
			c.share(3)
		}
		c.restart("two")
		c.share(3)
		if w.Backend() == zktest.Real {
			require.NoError(t, w.Real().WipeAndRestart())
			admin := zktest.Connect(t, w.ConnectString(), 30*time.Second)
			zktest.Eventually(t, 2*coordtest.Soon, func() bool {
				there, _, err := admin.Exists(w.Path("shards/plan"))
				return err == nil && there
			}, "there is a plan again")
			c.share(3)
		}
		c.runs()
	})
}

func TestF72AKeyThatFailsInOneProcessStopsNoOther(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		c := newCrew(t, w, append(numbered(11), "bad")...)
		for id := range c.all {
			c.restart(id)
			c.share(3)
		}
		before := c.counts()
		zktest.Eventually(t, coordtest.Soon, func() bool { return c.counts()["bad"] >= before["bad"]+3 }, "it is tried again")
		c.says(shards.KeyFailed + ": bad")
		c.share(3)
		delete(before, "bad")
		after := c.counts()
		delete(after, "bad")
		require.Equal(t, before, after, "no other key is touched")
		c.runs()
	})
}

func TestF81MembersOutliveWhatIsWrittenIntoTheirPlan(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		c := newCrew(t, w, numbered(12)...)
		before := c.counts()
		for _, plan := range []string{"x", "", `{"format":1}`} {
			_, err := w.Admin().Set(w.Path("shards/plan"), []byte(plan), -1)
			require.NoError(t, err)
			zktest.Eventually(t, coordtest.Soon, func() bool {
				data, _, err := w.Admin().Get(w.Path("shards/plan"))
				return err == nil && len(data) > 200
			}, "the plan is written anew")
		}
		c.says(shards.PlanIsNoPlan + ": ")
		require.Equal(t, before, c.counts(), "what is held stays held")
		c.restart("one")
		c.share(3)
		c.runs()
	})
}

func TestF82MembersOutliveANodeInOneKeysLine(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		c := newCrew(t, w, numbered(6)...)
		stranger := w.Path("shards/keys/k3") + "/_c_01234567-89ab-cdef-0123-456789abcdef-lock-0000000000"
		_, err := w.Admin().Create(stranger, nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		for _, id := range []string{"one", "two", "three"} {
			c.restart(id)
			c.share(3, "k3")
		}
		c.says(shards.KeyWaits + ": k3")
		c.runs()
		require.NoError(t, w.Admin().Delete(stranger, -1))
		c.share(3)
	})
}
