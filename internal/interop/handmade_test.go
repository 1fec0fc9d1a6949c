package interop

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

// Locks that are neither Curator's nor Kazoo's, and this module in their lines.

// TestProofZooKeepersOwnLockAndOursExcludeEachOther: the recipe of ZooKeeper's
// source tree.
func TestProofZooKeepersOwnLockAndOursExcludeEachOther(t *testing.T) {
	theirs := Java(t, "WriteLockHold")
	withPeers(t, func(t *testing.T, w *zktest.World, path string) { pair(t, w, path, coord.ZooKeeper, theirs.Start) })
}

// Another lock's claims stand in the same directory.
func TestProofALockOfSeveralInOneDirectoryAndOursExcludeEachOther(t *testing.T) {
	theirs := Java(t, "HandmadeHold")
	withPeers(t, func(t *testing.T, w *zktest.World, path string) {
		require.NoError(t, openAs(t, w, coord.Curator).EnsureDir(t.Context(), path+"/lock"))
		other, err := w.Admin().Create(path+"/lock/other_lock_", nil, zk.FlagEphemeral|zk.FlagSequence,
			zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		pair(t, w, path, coord.Named("jobs"), theirs.Start, "jobs_lock_")
		require.NoError(t, w.Admin().Delete(other, -1))
	})
}

func TestProofTheLockOfTheRecipesPageAndOursExcludeEachOther(t *testing.T) {
	theirs := Python(t, "handmade.py")
	withPeers(t, func(t *testing.T, w *zktest.World, path string) {
		pair(t, w, path, coord.Description{Prefix: "{guid}-lock-"}.Dialect(), theirs.Start, "page")
	})
}

func TestProofALockThatIsOneNodeAndOursExcludeEachOther(t *testing.T) {
	theirs := Python(t, "handmade.py")
	withPeers(t, func(t *testing.T, w *zktest.World, path string) { pair(t, w, path, oneNode, theirs.Start, "node") })
}

func TestProofGoZookeepersLockAndOursExcludeEachOther(t *testing.T) {
	withPeers(t, func(t *testing.T, w *zktest.World, path string) {
		pair(t, w, path, coord.Curator, func(t testing.TB, args ...string) *zktest.ChildProcess {
			return zktest.Child(t, "zk-lock", args...)
		})
	})
}

// enough is how many turns all contenders of a pairing take together.
const enough = 500

// pairing are contenders of another lock and of this module at one path. They
// take turns while their connections are cut and their processes killed.
type pairing struct {
	*testing.T
	path         string
	admin        *zk.Conn
	theirs, ours *side
	ready        atomic.Int32 // contenders that have begun

	mu      sync.Mutex
	calm    bool // the faults are over
	born    int
	turning map[string]contender // by name
	killed  map[string]bool
	noted   []string // entries
	unknown []string // entries that may be noted or not
}

// side is one lock's contenders, behind a proxy.
type side struct {
	name  string
	proxy *zktest.Proxy
	start func(name string) contender
}

// pair proves that two contenders of each side exclude each other; extra is
// what their program takes beyond the common arguments.
func pair(
	t *testing.T, w *zktest.World, path string, dialect coord.Dialect,
	theirs func(testing.TB, ...string) *zktest.ChildProcess, extra ...string,
) {
	p := &pairing{T: t, path: path, admin: w.Admin(), turning: map[string]contender{}, killed: map[string]bool{}}
	require.NoError(t, openAs(t, w, coord.Curator).EnsureDir(t.Context(), path+"/turns"))
	p.theirs = p.side(w, "theirs",
		func(args ...string) *zktest.ChildProcess { return theirs(t, append(args, extra...)...) })
	p.ours = p.side(w, "ours", func(args ...string) *zktest.ChildProcess {
		return zktest.Child(t, "turns", append(args, string(dialect))...)
	})
	var working sync.WaitGroup
	for _, s := range []*side{p.theirs, p.ours, p.theirs, p.ours} {
		working.Go(func() { p.work(s) })
	}
	p.strike()
	p.mu.Lock()
	p.calm = true
	p.mu.Unlock()
	working.Wait()
	p.judge()
}

func (p *pairing) side(w *zktest.World, name string, start func(args ...string) *zktest.ChildProcess) *side {
	s := &side{name: name, proxy: zktest.NewProxy(p, w.ConnectString())}
	s.start = func(name string) contender {
		return contender{start(s.proxy.Addr(), p.path, name, fmt.Sprint(contenderSession)), name}
	}
	return s
}

// work has a contender take turns, and another in its place once it is killed.
func (p *pairing) work(s *side) {
	for p.goesOn() {
		p.mu.Lock()
		p.born++
		name := fmt.Sprintf("%s.%d", s.name, p.born)
		p.mu.Unlock()
		c := s.start(name)
		if p.answer(c) != "ready" {
			return
		}
		p.ready.Add(1)
		if p.turns(c) {
			c.Send("quit")
			c.ExitCode(answersWithin)
		}
	}
}

func (p *pairing) goesOn() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.Failed() && (!p.calm || len(p.noted) < enough)
}

// answer returns a contender's answer, or "" if it was killed.
func (p *pairing) answer(c contender) string {
	select {
	case line, there := <-c.Lines():
		if there {
			return line
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.killed[c.name] {
			p.Errorf("%s has ended", c.name)
		}
	case <-time.After(answersWithin):
		p.Errorf("%s does not answer", c.name)
	}
	return ""
}

// turns has a contender take turns, and reports whether it lives.
func (p *pairing) turns(c contender) bool {
	for n := 0; p.goesOn(); n++ {
		p.mu.Lock()
		p.turning[c.name] = c
		p.mu.Unlock()
		c.Send(fmt.Sprintf("turn %d", n))
		answer := p.answer(c)
		p.mu.Lock()
		delete(p.turning, c.name)
		entry := fmt.Sprintf("%s-%d", c.name, n)
		if answer == "noted" {
			p.noted = append(p.noted, entry)
		} else {
			p.unknown = append(p.unknown, entry)
		}
		p.mu.Unlock()
		switch answer {
		case "":
			return false
		case "noted", "again":
		default:
			p.Errorf("%s: %s", c.name, answer)
		}
	}
	return true
}

// strike is what happens to the contenders while they take turns.
func (p *pairing) strike() {
	p.awaitReady(4)
	for _, s := range []*side{p.theirs, p.ours} {
		for skip := range 4 {
			how := []proxy.Action{proxy.CutOnReply, proxy.DropAndCut}[skip%2]
			p.struck(s.proxy.Inject(proxy.Fault{Path: p.path, Skip: skip, Do: how}))
		}
	}
	p.kill(p.theirs, p.ours)
	p.awaitReady(6)
	p.kill(p.ours, p.theirs)
	p.awaitReady(8)
	require.Positive(p, p.theirs.proxy.CutAll())
	require.Positive(p, p.ours.proxy.CutAll())
}

// await waits for a condition, unless a contender has failed.
func (p *pairing) await(what string, cond func() bool) {
	p.Helper()
	zktest.Eventually(p, answersWithin, func() bool { return p.Failed() || cond() }, "%s", what)
	if p.Failed() {
		p.FailNow()
	}
}

func (p *pairing) awaitReady(n int32) {
	p.await("all have begun", func() bool { return p.ready.Load() == n })
}

// struck waits until a fault has happened.
func (p *pairing) struck(fault *proxy.Rule) {
	p.await("a fault", func() bool { return fault.Fired() > 0 })
}

// kill ends a holder in the middle of its turn, and one who waits.
func (p *pairing) kill(holders, waiters *side) {
	goOn := make(chan struct{})
	defer close(goOn)
	sets := proxy.Fault{On: []int32{proxy.OpSetData, proxy.OpMulti}, Path: p.path + "/turns", Do: proxy.Hold(goOn)}
	p.struck(holders.proxy.Inject(sets))
	p.await("all contend", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.turning) == 4
	})
	entry := p.inside()
	p.mu.Lock()
	holder := p.turning[entry[:strings.LastIndex(entry, "-")]]
	var waiter contender
	for name, c := range p.turning {
		if strings.HasPrefix(name, waiters.name) {
			waiter = c
		}
	}
	p.killed[holder.name], p.killed[waiter.name] = true, true
	p.mu.Unlock()
	require.True(p, strings.HasPrefix(holder.name, holders.name), holder.name)
	holder.Kill()
	waiter.Kill()
	require.Equal(p, entry, p.inside(), "it held when it was killed")
}

func (p *pairing) inside() (entry string) {
	data, _, err := p.admin.Get(p.path + "/inside")
	require.NoError(p, err)
	return string(data)
}

// judge requires that the node has every entry that was noted, once, and no
// other than those of which nothing is known.
func (p *pairing) judge() {
	turns, _ := turnsAt(p.T, p.admin, p.path)
	p.Logf("%d turns noted, %d unknown", len(p.noted), len(p.unknown))
	slices.Sort(turns)
	require.Equal(p, slices.Compact(slices.Clone(turns)), turns, "an entry is noted twice")
	require.Subset(p, turns, p.noted, "an update is lost")
	require.Subset(p, append(p.noted, p.unknown...), turns)
	require.GreaterOrEqual(p, len(p.noted), enough)
}
