package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

const (
	// demoLimit is when a demo ends, done or not.
	demoLimit = 50 * time.Second
	// forgetWithin bounds the removal of what a demo leaves in ZooKeeper.
	forgetWithin = 4 * time.Second
	// demoSession is the longest session time-out of a demo: after a kill,
	// others wait for so long.
	demoSession = 4 * time.Second
	// The demo's own server ticks fast, so that a killed process's session ends
	// soon.
	embeddedTick    = 100 * time.Millisecond
	embeddedSession = time.Second
)

type demoVerbs struct {
	All      allDemos     `cmd:"" help:"All of them, one after the other."`
	Stock    stockVerb    `cmd:"" help:"Processes sell a stock under a lock while their holders are killed; none may be oversold."`
	Batch    batchDemo    `cmd:"" help:"Processes start together, share the words of some files, and add them up when all are done, though one is killed."`
	Election electionDemo `cmd:"" help:"Replicas stand for election while their leader is killed again and again; never two may lead."`
	Queue    queueDemo    `cmd:"" help:"Producers and consumers share a queue while consumers are killed with an item in hand; none may be lost."`
}

// stage is what a demo runs with: servers, a path, and its output.
type stage struct {
	connection
	ctx    context.Context // ends at demoLimit, or by a signal
	where  string          // the servers, for people
	path   string          // below it is all that the demo makes in ZooKeeper
	client *coord.Client
	close  func()
}

// demoRoot is what the demos' nodes are below.
const demoRoot = "/coorddemo/"

// stage prepares a demo: on the servers that were named, or else on one of its
// own. check is given the session time-out.
func (c connection) stage(name string, check func(session time.Duration) error) (*stage, error) {
	st := &stage{connection: c, where: c.ZK, path: demoRoot + name + "-" + strings.ToLower(rand.Text()[:8])}
	stop, err := st.servers()
	if err != nil {
		return nil, err
	}
	if err := check(st.SessionTimeout); err != nil {
		stop()
		return nil, err
	}
	ctx, calm := interruptible(context.Background())
	ctx, cancel := context.WithTimeoutCause(ctx, demoLimit, errors.New("out of time"))
	st.ctx = ctx
	st.close = func() {
		if st.client != nil {
			forget(st.client, st.path)
			hangUp(st.client)
		}
		cancel()
		calm()
		stop()
	}
	if st.client, err = st.open(ctx); err == nil && st.client.Chroot() != "" {
		err = failure(st.client.EnsureDir(ctx, st.path)) // so that its processes find the chroot
	}
	if err != nil {
		st.close()
		return nil, bySignal(ctx, err)
	}
	return st, nil
}

// servers starts a server if none are named, and finds the session time-out.
func (st *stage) servers() (stop func(), err error) {
	longest, stop := demoSession, func() {}
	if st.ZK == "" {
		server, err := zkembed.Start(zkembed.WithTick(embeddedTick))
		if err != nil {
			return nil, exitWith(exitFailed, "%w", err)
		}
		longest, stop = embeddedSession, func() { _ = server.Close() }
		st.ZK, st.where = server.ConnectString(), "an embedded server"
		st.tlsOptions = tlsOptions{} // it does not speak that
	}
	if st.SessionTimeout == 0 {
		st.SessionTimeout = longest
	}
	st.SessionTimeout = min(st.SessionTimeout, demoSession)
	return stop, nil
}

// process is the command of a further process of the demo.
func (st *stage) process(s *streams, verb string, args ...string) (*exec.Cmd, error) {
	cmd, err := st.child(verb, args...)
	if err == nil {
		cmd.Stderr = s.err
	}
	return cmd, err
}

// forget removes a node with all below it, as far as that is possible in time.
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
		return // there is nothing, or nothing to be done
	}
	for len(names) > 0 {
		some := names[:min(len(names), atOnce)]
		names = names[len(some):]
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

// ending is what the last lines of the demos have in common.
type ending struct {
	Demo    string  `json:"demo"`
	Seconds float64 `json:"seconds"`
	Error   string  `json:"error,omitempty"`
	OK      bool    `json:"ok"`
}

// endingOf is that of a demo that has ended; done reports whether it showed
// what it should.
func endingOf(demo string, took time.Duration, err error, done bool) ending {
	e := ending{Demo: demo, Seconds: seconds(took), OK: err == nil && done}
	if err != nil {
		e.Error = briefly(err).Error()
	}
	return e
}

// outcome prints a demo's last line and gives its status.
func (s *streams) outcome(result any, ok bool) error {
	s.told = true
	err := writeJSON(s.out, result)
	if err == nil && !ok {
		return silently(exitFailed)
	}
	return err
}

// plural is "1 process", "2 processes".
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// both is one of two wordings, of which the one for many has their number.
func both(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf(many, n)
}

// briefly is what an error says, without the errors it is made of line by line.
func briefly(err error) error { return errors.New(strings.ReplaceAll(err.Error(), "\n", "; ")) }
