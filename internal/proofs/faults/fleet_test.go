package faults

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/proofs/history"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func init() {
	zktest.RegisterChild("fleet, by hand", func(args []string) { newMember(args).serve(byHand) })
	zktest.RegisterChild("fleet", func(args []string) { newMember(args).serve(byModule) })
}

// acquireByHand waits for a lock as the recipes' page has it.
func acquireByHand(conn *zk.Conn, dir string) (node string, err error) {
	node, err = conn.Create(dir+"/n_", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	for err == nil {
		names, _, failed := conn.Children(dir)
		slices.SortFunc(names, func(a, b string) int { return cmp.Compare(a[len(a)-10:], b[len(b)-10:]) })
		place := slices.Index(names, path.Base(node))
		switch {
		case failed != nil:
			return "", failed
		case place < 0:
			return "", zk.ErrSessionExpired
		case place == 0:
			return node, nil
		}
		there, _, gone, failed := conn.ExistsW(dir + "/" + names[place-1])
		if err = failed; err == nil && there {
			<-gone
		}
	}
	return "", err
}

// acquireByModule is the same after the change.
func acquireByModule(ctx context.Context, client *coord.Client, dir string) (*coord.Hold, error) {
	m, err := lock.New(client, dir, lock.Dialect(coord.Description{Prefix: "n_"}.Dialect()))
	if err != nil {
		return nil, err
	}
	return m.Acquire(ctx)
}

// member is a process of the fleet, which acquires as often as it can. It
// writes when its history began, then the history's records, and lines that
// begin with "!" for holders that met.
type member struct {
	servers, dir, name string
	timeout            time.Duration
	rec                *history.Recorder
	stop               chan struct{} // closed at the end of its stdin
}

func newMember(args []string) *member {
	m := &member{args[0], args[1], args[2], must(time.ParseDuration(args[3])), history.New(), make(chan struct{})}
	fmt.Println(m.rec.Begin().UnixNano())
	m.rec.Sink(func(r history.Record) { fmt.Println(r) })
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		}
		close(m.stop)
	}()
	return m
}

// turnsOf returns what takes turns in a session, and what ends the session.
type turnsOf func(m *member) (turn func() error, end func() error, err error)

// serve takes turns until it is told to stop. After an error it begins a new
// session.
func (m *member) serve(turns turnsOf) {
	for {
		turn, end, err := turns(m)
		zktest.ExitOn(err)
		for err == nil {
			select {
			case <-m.stop:
				zktest.ExitOn(end())
				return
			default:
			}
			err = turn()
		}
		fmt.Fprintln(os.Stderr, m.name, err)
		_ = end()
	}
}

// linger is how long a turn lasts.
func linger() { <-time.After(5 * time.Millisecond) }

func (m *member) met(by error) error {
	if errors.Is(by, zk.ErrNodeExists) || errors.Is(by, coord.ErrNodeExists) {
		fmt.Println("!", m.name, "meets another holder")
	}
	return by
}

// byHand is the program before the change. The history has the end of its hold
// where its last request was answered, for it does not know that its session
// has ended.
func byHand(m *member) (turn, end func() error, err error) {
	conn, _, err := zk.Connect(strings.Split(m.servers, ","), m.timeout, zk.WithLogInfo(false))
	turn = func() error {
		op := m.rec.Call(m.name, m.dir, history.Exclusive)
		node, err := acquireByHand(conn, m.dir)
		var stat *zk.Stat
		if err == nil {
			_, stat, err = conn.Exists(node)
		}
		if err != nil {
			op.End(history.Failed, err)
			return err
		}
		op.End(history.OK, nil, history.Token(stat.Czxid))
		_, err = conn.Create(m.dir+"-inside", []byte(m.name), zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		sure := time.Now()
		if err = m.met(err); err == nil {
			linger()
			err = conn.Delete(m.dir+"-inside", -1)
		}
		released := m.rec.Call(m.name, m.dir, history.Release, history.Of(op))
		if err == nil {
			err = conn.Delete(node, -1)
		}
		released.End(history.OK, err)
		if err != nil {
			op.Lost(sure, err)
		}
		return err
	}
	return turn, func() error { conn.Close(); return nil }, err
}

// byModule is the program after the change.
func byModule(m *member) (turn, end func() error, err error) {
	ctx := context.Background()
	client, err := coord.Open(ctx, m.servers, coord.WithSessionTimeout(m.timeout), coord.WithTick(tick),
		coord.WithIdentity(m.name))
	if err != nil {
		return nil, nil, err
	}
	turn = func() error {
		g, err := history.Acquire(m.rec, m.name, m.dir, history.Exclusive,
			func() (*coord.Hold, error) { return acquireByModule(ctx, client, m.dir) })
		if err != nil {
			return err
		}
		_, err = client.Txn(ctx, coord.EphemeralOp(m.dir+"-inside", []byte(m.name)))
		if err = m.met(err); err == nil {
			linger()
			err = client.Delete(ctx, m.dir+"-inside", -1)
		}
		return errors.Join(err, g.Release(ctx))
	}
	return turn, func() error { return client.Close(ctx) }, err
}

// fleet is what the test knows of the processes.
type fleet struct {
	scene
	timeout time.Duration
	rec     *history.Recorder
	born    int
	killed  int // while they held
	met     atomic.Int32
}

// process is one of them.
type process struct {
	*zktest.ChildProcess
	name  string
	turns atomic.Int32
	read  sync.WaitGroup
}

// TestAFleetOfProcessesMovesFromALockOfItsOwnAndBack has six processes change
// one after the other, while all lock as fast as they can. Half of them are
// killed while they hold, the others end by themselves.
func TestAFleetOfProcessesMovesFromALockOfItsOwnAndBack(t *testing.T) {
	each(t, func(s scene) {
		const size = 6
		f := &fleet{scene: s, timeout: 2 * T, rec: history.New()}
		s.w.SetTimeout(f.timeout)
		require.NoError(s, s.client().EnsureDir(s.Context(), s.dir()))
		var all [size]*process
		for i := range all {
			all[i] = f.start("fleet, by hand")
		}
		for _, program := range []string{"fleet", "fleet, by hand"} {
			for i, p := range all {
				f.hasTurns(p)
				if i%2 == 0 {
					f.killHolding(p)
				} else {
					f.end(p)
				}
				all[i] = f.start(program)
			}
		}
		for _, p := range all {
			f.hasTurns(p)
			f.end(p)
		}
		require.Equal(s, size, f.killed)
		require.Zero(s, f.met.Load(), "holders met")
		s.Logf("%d records", f.rec.Len())
		history.Check(s, f.rec, history.Mutex(s.dir()))
	}, zktest.Embedded, zktest.Real)
}

func (f *fleet) start(program string) *process {
	f.born++
	p := &process{name: fmt.Sprintf("%02d", f.born)}
	p.ChildProcess = zktest.Child(f, program, f.w.ConnectString(), f.dir(), p.name, f.timeout.String())
	p.read.Go(func() { f.read(p) })
	return p
}

func (f *fleet) read(p *process) {
	begin, _ := strconv.ParseInt(<-p.Lines(), 10, 64)
	shift := time.Unix(0, begin).Sub(f.rec.Begin().Round(0)) // by the clock that both processes have
	for line := range p.Lines() {
		var r history.Record
		switch {
		case strings.HasPrefix(line, "!"):
			f.met.Add(1)
			f.Log(line)
		case json.Unmarshal([]byte(line), &r) == nil: // the last line of a process that was killed may be cut off
			f.rec.Import(p.name, r, shift)
			if r.Kind == history.Exclusive && r.Outcome == history.OK {
				p.turns.Add(1)
			}
		}
	}
}

// hasTurns waits until a process has had turns from now on.
func (f *fleet) hasTurns(p *process) {
	f.Helper()
	before := p.turns.Load()
	zktest.Eventually(f, 2*patience, func() bool { return p.turns.Load() >= before+5 }, "process %s has turns", p.name)
}

// killHolding kills a process while it holds: it stops it first, to see.
func (f *fleet) killHolding(p *process) {
	f.Helper()
	admin := f.admin()
	holds := func() bool {
		inside, _, err := admin.Get(f.dir() + "-inside")
		return err == nil && string(inside) == p.name
	}
	zktest.Eventually(f, 2*patience, func() bool {
		if !holds() {
			return false
		}
		require.NoError(f, p.Stop())
		if holds() {
			return true
		}
		require.NoError(f, p.Continue())
		return false
	}, "process %s holds", p.name)
	f.rec.Note("kill %s", p.name)
	p.Kill()
	require.True(f, holds(), "it held when it was killed")
	f.killed++
	p.read.Wait()
	f.rec.Died(p.name)
}

// end has a process end by itself.
func (f *fleet) end(p *process) {
	f.Helper()
	p.CloseStdin()
	require.Zero(f, p.ExitCode(2*patience))
	p.read.Wait()
}
