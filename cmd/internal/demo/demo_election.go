package demo

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/demo/succession"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
)

type electionDemo struct {
	Replicas int `default:"3" help:"How many processes stand for election."`
	Kill     int `default:"5" help:"How many leaders to kill with SIGKILL, one after the other."`
}

// electionResult is the last line of the demo.
type electionResult struct {
	ending
	succession.Result
	Replicas int    `json:"replicas"`
	MaxGap   *int64 `json:"max_gap_ms"` // from a kill to the next leader; null if that did not happen
}

func (v *electionDemo) check(session time.Duration) error {
	switch {
	case v.Replicas < 1 || v.Replicas > 50:
		return term.UsageError("--replicas %d: it must be between 1 and 50", v.Replicas)
	case v.Kill < 0:
		return term.UsageError("--kill %d: it must not be negative", v.Kill)
	}
	if limit := int(demoLimit * 3 / 4 / (session + time.Second)); v.Kill > limit {
		return term.UsageError("--kill %d: after each kill the next leads when a session time-out (%v) has passed, "+
			"and the demo ends within a minute; kill at most %d", v.Kill, session, limit)
	}
	return nil
}

// Run plays it.
func (v *electionDemo) Run(s *term.Streams, c *conn.Connection) error {
	st, err := newStage(c, "election", v.check)
	if err != nil {
		return err
	}
	defer st.close()
	dir, err := os.MkdirTemp("", "coorddemo-election-")
	if err != nil {
		return term.ExitWith(term.ExitFailed, "%w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p := term.NewProgress(s)
	killed := ""
	if v.Kill > 0 {
		killed = fmt.Sprintf(",\nand %s killed with SIGKILL", term.Plural(v.Kill, "leader is", "leaders are"))
	}
	p.Tell("%s at %s\non %s. The leader writes to a log, every few milliseconds%s.\n",
		term.Plural(v.Replicas, "process stands for election", "processes stand for election"), st.path, st.where, killed)
	log := filepath.Join(dir, "log")
	republic := &succession.Republic{
		Replicas: v.Replicas, Kills: v.Kill, Log: log,
		Command: func(int) (*exec.Cmd, error) { return st.process(s, "__replica", st.path, log) },
		Watch:   func(e succession.Progress) { v.tell(p, e) },
	}
	result, err := republic.Run(st.ctx)
	return v.conclude(s, p, result, err)
}

func (v *electionDemo) tell(p *term.Progress, e succession.Progress) {
	switch e.Kind {
	case "leads":
		if e.Gap == 0 {
			p.Tell("  ★ process %d leads, with token %d", e.PID, e.Token)
			return
		}
		p.Tell("  ★ process %d leads, with token %d, %v later", e.PID, e.Token, e.Gap.Round(time.Millisecond))
	case "killed":
		p.Tell("  ✗ process %d is killed, %v in office", e.PID, e.Reign.Round(time.Millisecond))
	case "failed":
		p.Tell("  ! a replica ended by itself: %v", e.Err)
	}
}

func (v *electionDemo) conclude(s *term.Streams, p *term.Progress, r succession.Result, err error) error {
	out := electionResult{
		ending: endingOf("election", r.Took, err, r.Overlaps == 0 && r.Kills == v.Kill && r.Terms > v.Kill),
		Result: r, Replicas: v.Replicas, MaxGap: term.Measured(r.MaxGap),
	}
	gap := ""
	if r.MaxGap > 0 {
		gap = fmt.Sprintf(", never longer than %v without a leader", r.MaxGap.Round(time.Millisecond))
	}
	p.Tell("\n  %s, %s%s; %.1f s.\n  The log has %s, %d of them by a former leader.",
		term.Plural(r.Terms, "term", "terms"), term.Plural(r.Kills, "leader killed", "leaders killed"), gap, r.Took.Seconds(), term.Plural(r.Entries, "entry", "entries"), r.Overlaps)
	if err != nil {
		p.Tell("  Not finished: %s.", out.Error)
	}
	return outcome(s, out, out.OK)
}

// ReplicaVerb is one candidate process of the election demo.
type ReplicaVerb struct {
	Path string `arg:""`
	Log  string `arg:""`
}

// Run stands for election until standard input ends.
func (v *ReplicaVerb) Run(s *term.Streams, c *conn.Connection) error {
	return c.Connected(func(client *coord.Client) error {
		e, err := election.New(client, v.Path)
		if err != nil {
			return err
		}
		r := succession.Replica{Log: v.Log, In: s.In, Out: s.Out, Run: func(ctx context.Context, lead succession.Lead) error {
			return e.Run(ctx, nil, func(ctx context.Context, t *election.Term) error { return lead(ctx, t.Token(), t.Err) })
		}}
		return r.Serve(context.Background())
	})
}
