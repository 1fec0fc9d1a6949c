//go:build linux || darwin || freebsd || openbsd

package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/guard"
	"github.com/zkcoord/zkcoord/cmd/internal/self"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/shards"
)

// member runs the command for each key that it owns.
func (v *ShardsVerb) member(s *term.Streams, c *conn.Connection) error {
	if err := guard.Able(); err != nil {
		return &term.ExitError{Code: term.ExitOwnFault, Err: err}
	}
	if status, _, err := guard.Runnable(v.argv()[0]); err != nil {
		return &term.ExitError{Code: status, Err: err}
	}
	signals := make(chan os.Signal, 16)
	forward(signals)
	asked, stopSignals := untilSignal(context.Background(), signals, term.StopSelf)
	defer stopSignals()
	m := &shardsMember{verb: v, streams: s}
	c.Observe, c.Share = m.observe, m.attended.share
	v.ApplyTo(c, v.argv()[0])
	client, err := c.Open(asked)
	if err != nil {
		return term.BySignal(asked, err)
	}
	defer conn.HangUp(client)
	m.client = client
	if _, err := m.grace(); err != nil {
		return err
	}
	sh, err := v.open(client, shards.OnEvent(m.tell))
	if err != nil {
		return conn.Failure(err)
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-asked.Done():
			s.Note("leaving: all keys go to other members; once more to end at once")
		case <-over:
			return
		}
		for again := time.NewTicker(tryAgain); ; { // Run may not have begun
			_ = sh.Leave(context.Background())
			select {
			case <-again.C:
			case <-over:
				again.Stop()
				return
			}
		}
	}()
	return v.explain(sh.Run(context.Background(), m.work))
}

// tryAgain is how long a member that is told to leave waits for Run to begin.
const tryAgain = 50 * time.Millisecond

// shardsMember is the commands of a member, each under a guard of its own. None
// of the guards closes the session when this process is killed, since others'
// commands may still run: it runs out, or the attendant closes it when the last
// guard is gone.
type shardsMember struct {
	verb     *ShardsVerb
	streams  *term.Streams
	client   *coord.Client
	attended attended
}

func (m *shardsMember) observe(e event.Event) {
	if e.Kind == event.SessionAttended && e.Err != nil {
		m.streams.Note(noAttendant, e.Err)
	}
}

// tell notes what goes wrong.
func (m *shardsMember) tell(e shards.Event) {
	about := e.Kind
	if e.Key != "" {
		about += " " + e.Key
	}
	if e.Again > 0 {
		about += fmt.Sprintf(", again in %v", e.Again)
	}
	m.streams.Note("%s: %v", about, e.Err)
}

// grace is the time between TERM and KILL in the session of the moment.
func (m *shardsMember) grace() (time.Duration, error) {
	return (&job{KillAfter: m.verb.KillAfter}).grace(m.client.Info().SessionTimeout)
}

func (m *shardsMember) start(h coord.Held, key string, killAfter time.Duration) (*guard.Process, error) {
	cmd, err := self.Command(guard.Verb)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(alone(h).environment(conn.NodePaths{conn.NodePath(path.Dir(h.Node()))}), "COORD_KEY="+key)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return m.attended.guard(guard.Options{
		Guard: cmd, Argv: m.verb.argv(), Deadline: guard.InstantOf(h.Deadline()), KillAfter: killAfter,
		Farewell: &guard.Farewell{Within: m.client.Info().SessionTimeout},
	})
}

// work runs the command for a key. It returns when nothing of the command is
// left that had to end.
func (m *shardsMember) work(ctx context.Context, key string, h coord.Held) error {
	killAfter, err := m.grace()
	if err != nil {
		return &term.ExitError{Code: term.ExitOwnFault, Err: err}
	}
	g, err := m.start(h, key, killAfter)
	if err != nil {
		return &term.ExitError{Code: term.ExitOwnFault, Err: err}
	}
	defer m.attended.ended(g)
	end, asked := m.watch(ctx, g, h, killAfter)
	switch {
	case end.Kind == guard.Failed:
		return &term.ExitError{Code: end.Code, Err: errors.New(string(end.Message))}
	case !end.Over():
		m.abandon(key)
	case asked || h.Err() != nil:
		return nil
	case end.Cause == guard.ByDeadline, end.Cause == guard.ByKill:
		return term.ExitWith(term.ExitLost,
			"its command was ended, since its guard was killed, or the servers did not confirm the key in time; it begins anew")
	case end.ExitCode() != term.ExitOK:
		return term.ExitWith(end.ExitCode(), "the command of %s ended with status %d", key, end.ExitCode())
	}
	return nil
}

// watch keeps a guard informed until its command has ended. It reports whether
// the command was asked to end.
func (m *shardsMember) watch(
	ctx context.Context, g *guard.Process, h coord.Held, killAfter time.Duration,
) (end guard.Event, asked bool) {
	look := time.NewTicker(max(time.Millisecond, m.client.Info().SessionTimeout/40))
	defer look.Stop()
	draining, ended, sent := shards.Draining(ctx), ctx.Done(), h.Deadline()
	var kill, abandon, despair <-chan time.Time
	for {
		select {
		case e, more := <-g.Events():
			if !more {
				return end, asked
			}
			end = e
		case <-look.C:
			if now := h.Deadline(); !now.Equal(sent) && h.Err() == nil {
				sent = now
				g.Extend(guard.InstantOf(now))
			}
		case <-draining:
			draining, asked = nil, true
			g.Drain(m.verb.DrainTimeout)
			kill = time.After(m.verb.DrainTimeout)
		case <-ended:
			draining, ended, asked, kill = nil, nil, true, time.After(0)
			if h.Err() == nil { // the member ends
				g.Stop()
				kill = time.After(killAfter)
			}
		case <-kill:
			g.Kill()
			abandon = time.After(abandonAfter)
		case <-abandon:
			g.Abandon()
			despair = time.After(despairAfter)
		case <-despair:
			return guard.Event{Kind: guard.Gone, At: guard.Now(), Cause: guard.ByKill, Unsure: true}, asked
		}
	}
}

// abandon ends this process at once: something of a command may be running
// still, so no key is released before the session runs out. The guards end the
// other commands.
func (m *shardsMember) abandon(key string) {
	m.attended.leave()
	lost := term.ExitWith(term.ExitLost,
		"something of the command of %s may be running still; nothing is released before the session ends, in at most %v",
		key, m.client.Info().SessionTimeout)
	m.streams.Note("%v", lost)
	m.streams.AccountFor(term.StatusOf(lost))
	if told, ok := m.streams.Err.(*term.Notes); ok {
		told.Drain()
	}
	os.Exit(term.ExitLost)
}
