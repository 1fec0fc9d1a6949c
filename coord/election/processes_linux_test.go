package election_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
)

// killsVariable says how many leaders TestRealLeadersAreKilled kills; the
// default is small, since each costs a session time-out.
const killsVariable = "ZKCOORD_LEADER_KILLS"

// processSession is the session time-out of the replicas that are processes.
const processSession = 5 * zktest.DefaultTick

func init() { zktest.RegisterChild("replica", replicaMain) }

// now is the time on a clock that all processes share and that is never set.
func now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

// replicaMain runs in a child process until its standard input ends. It tells
// "lead TOKEN SESSION TIME" and "over TOKEN SESSION TIME".
func replicaMain(args []string) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		}
		cancel()
	}()
	if err := replicate(ctx, args[0], args[1]); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func replicate(ctx context.Context, servers, path string) error {
	c, err := coord.Open(ctx, servers, coord.WithSessionTimeout(processSession), coord.WithTick(zktest.DefaultTick))
	if err != nil {
		return err
	}
	defer c.Close(context.Background())
	e, err := election.New(c, path)
	if err != nil {
		return err
	}
	return e.Run(ctx, nil, func(ctx context.Context, t *election.Term) error {
		fmt.Printf("lead %d %d %d\n", t.Token(), t.Session(), now())
		<-ctx.Done()
		fmt.Printf("over %d %d %d\n", t.Token(), t.Session(), now())
		return ctx.Err()
	})
}

// replica is a child process, and the proxy it connects through.
type replica struct {
	*zktest.ChildProcess
	link *zktest.Proxy
}

// news is what a replica reported.
type news struct {
	from           *replica
	what           string
	token, session int64
	at             time.Duration
}

// republic is what the test knows of its replicas and their terms.
type republic struct {
	t     *testing.T
	w     *zktest.World
	news  chan news
	terms []*term // in the order of their tokens
}

type term struct {
	news
	end     time.Duration // when the leader knew, or was dead; 0 while it leads
	unaware bool          // it could not know in time
}

func (r *republic) found(link *zktest.Proxy) {
	r.t.Helper()
	c := &replica{zktest.Child(r.t, "replica", link.Addr(), r.w.Path("election")), link}
	go func() {
		for line := range c.Lines() {
			n := news{from: c}
			if _, err := fmt.Sscan(line, &n.what, &n.token, &n.session, &n.at); err == nil {
				r.news <- n
			}
		}
	}()
}

// leader waits for the next term, noting what else the replicas tell.
func (r *republic) leader() *term {
	r.t.Helper()
	for before := len(r.terms); len(r.terms) == before; {
		r.hear("a leader")
	}
	return r.terms[len(r.terms)-1]
}

func (r *republic) hear(wanted string) {
	r.t.Helper()
	n := zktest.Receive(r.t, coordtest.Soon, r.news, "%s", wanted)
	if n.what == "lead" {
		r.terms = append(r.terms, &term{news: n})
		return
	}
	for _, t := range r.terms {
		if t.token == n.token && t.end == 0 {
			t.end = n.at
		}
	}
}

// oneAtATime judges the terms.
func (r *republic) oneAtATime() {
	r.t.Helper()
	for i, next := range r.terms[1:] {
		last := r.terms[i]
		require.Greater(r.t, next.token, last.token)
		for !last.unaware && last.end == 0 {
			r.hear("the end of a term")
		}
		if !last.unaware {
			require.LessOrEqual(r.t, last.end, next.at, "two lead: %d and %d", last.token, next.token)
		}
	}
}

// kill ends a leader's term without its consent, and tells when.
func (r *republic) kill(t *term, kind int) (at time.Duration) {
	r.t.Helper()
	at = now()
	switch kind {
	case dies:
		t.from.Kill()
		t.end = now()
	case cutOff:
		t.from.link.Blackhole(proxy.Both)
	case expires:
		t.unaware = true
		r.w.ExpireSession(t.session)
	}
	return at
}

// revive starts again the replicas that were killed.
func (r *republic) revive(t *term, kind int) {
	r.t.Helper()
	switch kind {
	case dies:
		r.found(t.from.link)
	case cutOff:
		t.from.link.Heal()
	}
}

func TestRealLeadersAreKilled(t *testing.T) {
	kills := 9
	if text := os.Getenv(killsVariable); text != "" {
		var err error
		kills, err = strconv.Atoi(text)
		require.NoError(t, err, killsVariable)
	}
	w := zktest.NewPrivate(t, zktest.Real)
	r := &republic{t: t, w: w, news: make(chan news, 1000)}
	for range 3 {
		r.found(zktest.NewProxy(t, w.Real().Addr()))
	}
	leader, gaps := r.leader(), [kinds]time.Duration{}
	for i := range kills {
		kind := i % kinds
		killed := r.kill(leader, kind)
		next := r.leader()
		gap := next.at - killed
		require.LessOrEqual(t, gap, processSession+2*zktest.DefaultTick+500*time.Millisecond, "kill %d of kind %d", i, kind)
		gaps[kind] = max(gaps[kind], gap)
		r.revive(leader, kind)
		leader = next
	}
	t.Logf("%d kills; longest gaps: kill -9 %v, cut off %v, session ended by an operator %v", kills, gaps[dies], gaps[cutOff], gaps[expires])
	r.oneAtATime()
	require.Len(t, r.terms, kills+1)
}
