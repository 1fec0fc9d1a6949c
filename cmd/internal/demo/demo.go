package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

const (
	// demoLimit is when a demo ends, done or not.
	demoLimit = 50 * time.Second
	// forgetWithin bounds the removal of what a demo leaves in ZooKeeper.
	forgetWithin = 4 * time.Second
	// demoSession is the longest session timeout of a demo: after a kill,
	// others wait for so long.
	demoSession = 4 * time.Second
	// The demo's own server ticks fast: a killed process's session ends soon.
	embeddedTick    = 100 * time.Millisecond
	embeddedSession = time.Second
)

// DemoVerbs are the demonstrations.
type DemoVerbs struct {
	Stock stockVerb `cmd:"" help:"Processes sell a stock under a lock while their holders are killed; none may be oversold."`
}

// stage is what a demo runs with: servers, a path, and its output.
type stage struct {
	conn.Connection
	*term.Progress
	streams *term.Streams
	ctx     context.Context // ends at demoLimit, or by a signal
	begun   time.Time
	where   string // the servers, for people
	path    string // below it is all that the demo makes in ZooKeeper
	client  *coord.Client
}

// play runs a demo: on the named servers, or else on a server of its own. check
// gets the session timeout.
func play(
	s *term.Streams, c *conn.Connection, check func(session time.Duration) error, run func(st *stage) error,
) error {
	st := &stage{
		Connection: *c, Progress: term.NewProgress(s), streams: s, where: c.ZK,
		path: look.DemoRoot + "stock-" + strings.ToLower(rand.Text()[:8]),
	}
	stop, err := st.servers()
	if err != nil {
		return err
	}
	defer stop()
	if err := check(st.SessionTimeout); err != nil {
		return err
	}
	ctx, stopSignals := term.Interruptible(context.Background())
	defer stopSignals()
	ctx, cancel := context.WithTimeoutCause(ctx, demoLimit, errors.New("out of time"))
	defer cancel()
	st.ctx = ctx
	if st.client, err = st.Open(ctx); err != nil {
		return term.BySignal(ctx, err)
	}
	defer conn.HangUp(st.client)
	defer forget(st.client, st.path)
	if st.client.Info().Chroot != "" { // it is made before the processes look for it
		if err := st.client.EnsureDir(ctx, st.path); err != nil {
			return term.BySignal(ctx, conn.Failure(err))
		}
	}
	st.begun = time.Now()
	return run(st)
}

// servers starts a server if none are named, and finds the session timeout.
func (st *stage) servers() (stop func(), err error) {
	longest, stop := demoSession, func() {}
	if st.ZK == "" {
		server, err := zkembed.Start(zkembed.WithTick(embeddedTick))
		if err != nil {
			return nil, term.ExitWith(term.ExitFailed, "%w", err)
		}
		longest, stop = embeddedSession, func() { _ = server.Close() }
		st.ZK, st.where = server.ConnectString(), "an embedded server"
		st.TlsOptions = conn.TlsOptions{} // it speaks no TLS
	}
	if st.SessionTimeout == 0 {
		st.SessionTimeout = longest
	}
	st.SessionTimeout = min(st.SessionTimeout, demoSession)
	return stop, nil
}

// process is the command of a further process of the demo.
func (st *stage) process(verb string, args ...string) (*exec.Cmd, error) {
	cmd, err := st.Child(verb, args...)
	if err == nil {
		cmd.Stderr = st.streams.Err
	}
	return cmd, err
}

// forget removes a node with all below it, as far as possible within
// forgetWithin.
func forget(client *coord.Client, path string) {
	ctx, cancel := context.WithTimeout(context.Background(), forgetWithin)
	defer cancel()
	prune(ctx, client, path)
}

// atOnce is how many nodes are removed in one request.
const atOnce = 500

func prune(ctx context.Context, client *coord.Client, path string) {
	names, err := client.Children(ctx, path)
	if err != nil {
		return // there is no node, or the request failed
	}
	for some := range slices.Chunk(names, atOnce) {
		ops := make([]coord.Op, len(some))
		for i, name := range some {
			ops[i] = coord.DeleteOp(path+"/"+name, -1)
		}
		if _, err := client.Txn(ctx, ops...); err == nil {
			continue
		}
		for _, name := range some { // some have children, or are gone
			prune(ctx, client, path+"/"+name)
		}
	}
	_ = client.Delete(ctx, path, -1)
}
