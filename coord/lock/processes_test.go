package lock_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
	highest int
}

func newCrowd(t *testing.T, w *zktest.World) *crowd {
	file := filepath.Join(t.TempDir(), "count")
	require.NoError(t, writeCount(file, 0, 0))
	return &crowd{t: t, w: w, file: file, reports: make(chan string, 100_000)}
}

// join starts one more process. When sacrifice, it is killed the first time it
// holds; killed is closed then.
func (c *crowd) join(sacrifice bool) (killed <-chan struct{}) {
	p := zktest.Child(c.t, "counter", c.w.ConnectString(), c.w.Path("lock"), c.file)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for line := range p.Lines() {
			if sacrifice && line == "in" {
				p.Kill()
				return
			}
			c.reports <- line
		}
	}()
	return done
}

// progress waits until n more counts were reported, each by one process only.
func (c *crowd) progress(n int) {
	c.t.Helper()
	for n > 0 {
		line := zktest.Receive(c.t, time.Minute, c.reports, "nobody makes progress")
		require.False(c.t, strings.HasPrefix(line, "violation"), line)
		if count, ok := strings.CutPrefix(line, "out "); ok {
			value, err := strconv.Atoi(count)
			require.NoError(c.t, err)
			c.highest = max(c.highest, value)
			c.said++
			n--
		}
	}
}

// check: every report stands for one addition; a process killed after it had
// written could not report.
func (c *crowd) check(kills int) {
	c.t.Helper()
	require.GreaterOrEqual(c.t, c.highest, c.said, "an update was lost")
	require.LessOrEqual(c.t, c.highest, c.said+kills+crowdSize, "more updates than grants")
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
	c.check(kills)
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
	c.check(0)
}
