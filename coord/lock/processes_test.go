package lock_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func init() { zktest.RegisterChild("counter", counterMain) }

// counterMain adds one to the count in a plain file, again and again, under the
// lock. It says "in" when it holds and "out COUNT" when it has written.
func counterMain(args []string) {
	servers, path, file := args[0], args[1], args[2]
	ctx := context.Background()
	c, err := coord.Open(ctx, servers, coord.WithSessionTimeout(sessionTimeout), coord.WithTick(zktest.DefaultTick))
	exitOn(err)
	m, err := lock.New(c, path)
	exitOn(err)
	for {
		h, err := m.Acquire(ctx)
		exitOn(err)
		fmt.Println("in")
		count, token := readCount(file)
		if h.Token() <= token {
			fmt.Printf("violation token %d after %d\n", h.Token(), token)
		}
		if h.Err() == nil {
			exitOn(writeCount(file, count+1, h.Token()))
			fmt.Println("out", count+1)
		}
		exitOn(h.Release(ctx))
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func readCount(file string) (count int, token int64) {
	data, err := os.ReadFile(file)
	exitOn(err)
	_, err = fmt.Sscan(string(data), &count, &token)
	exitOn(err)
	return count, token
}

// writeCount replaces the file as a whole, so that a kill leaves either count.
func writeCount(file string, count int, token int64) error {
	next := fmt.Sprintf("%s.%d", file, os.Getpid())
	if err := os.WriteFile(next, fmt.Appendf(nil, "%d %d\n", count, token), 0o600); err != nil {
		return err
	}
	return os.Rename(next, file)
}

// crowd is a number of processes that count under one lock.
type crowd struct {
	t       *testing.T
	w       *zktest.World
	file    string
	reports chan string // "out N" and violations of all processes
	said    int         // counts reported
	all     []*zktest.ChildProcess
	reading sync.WaitGroup
}

func newCrowd(t *testing.T, w *zktest.World) *crowd {
	file := filepath.Join(t.TempDir(), "count")
	require.NoError(t, writeCount(file, 0, 0))
	return &crowd{t: t, w: w, file: file, reports: make(chan string, 100_000)}
}

// join starts one more process. When sacrifice, it is killed when it says for
// the first time that it holds; killed is closed then.
func (c *crowd) join(sacrifice bool) (killed <-chan struct{}) {
	p, done := zktest.Child(c.t, "counter", c.w.ConnectString(), c.w.Path("lock"), c.file), make(chan struct{})
	c.all = append(c.all, p)
	kill := sync.OnceFunc(func() {
		p.Kill()
		close(done)
	})
	c.reading.Go(func() {
		for line := range p.Lines() {
			if sacrifice && line == "in" {
				kill()
			}
			c.reports <- line
		}
	})
	return done
}

// progress waits until n more counts were reported.
func (c *crowd) progress(n int) {
	c.t.Helper()
	for until := c.said + n; c.said < until; {
		c.take(zktest.Receive(c.t, time.Minute, c.reports, "no process makes progress"))
	}
}

func (c *crowd) take(line string) {
	c.t.Helper()
	require.False(c.t, strings.HasPrefix(line, "violation"), line)
	if strings.HasPrefix(line, "out ") {
		c.said++
	}
}

// check kills all: every report stands for one addition, and each process may
// have died after one that it could not report.
func (c *crowd) check() {
	c.t.Helper()
	for _, p := range c.all {
		p.Kill()
	}
	c.reading.Wait()
	for len(c.reports) > 0 {
		c.take(<-c.reports)
	}
	count, _ := readCount(c.file)
	require.GreaterOrEqual(c.t, count, c.said, "an update was lost")
	require.LessOrEqual(c.t, count, c.said+len(c.all), "more updates than grants")
}

const crowdSize = 8

func TestEightProcessesWithKilledHoldersLoseNoUpdate(t *testing.T) {
	w := zktest.New(t, zktest.Real)
	c := newCrowd(t, w)
	for range crowdSize {
		c.join(false)
	}
	c.progress(50)
	const kills = 5
	for range kills {
		zktest.Receive(t, time.Minute, c.join(true), "the victim never holds")
		c.progress(20)
	}
	c.check()
}

func TestProcessesOnAnEnsembleWhoseLeaderIsKilledLoseNoUpdate(t *testing.T) {
	w := zktest.NewPrivate(t, zktest.Ensemble)
	c := newCrowd(t, w)
	for range crowdSize {
		c.join(false)
	}
	c.progress(50)
	const kills = 2
	for range kills {
		leader, err := w.Ensemble().Leader()
		require.NoError(t, err)
		require.NoError(t, leader.Kill())
		c.progress(50)
		require.NoError(t, leader.Launch())
		require.NoError(t, leader.AwaitReady())
		c.progress(20)
	}
	c.check()
}
