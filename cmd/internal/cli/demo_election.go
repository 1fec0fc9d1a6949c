package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/demo/succession"
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
		return usageError("--replicas %d: it must be between 1 and 50", v.Replicas)
	case v.Kill < 0:
		return usageError("--kill %d: it must not be negative", v.Kill)
	}
	if limit := int(demoLimit * 3 / 4 / (session + time.Second)); v.Kill > limit {
		return usageError("--kill %d: after each kill the next leads when a session time-out (%v) has passed, "+
			"and the demo ends within a minute; kill at most %d", v.Kill, session, limit)
	}
	return nil
}

// Run plays it.
func (v *electionDemo) Run(s *streams, c *connection) error {
	st, err := c.stage("election", v.check)
	if err != nil {
		return err
	}
	defer st.close()
	dir, err := os.MkdirTemp("", "coorddemo-election-")
	if err != nil {
		return exitWith(exitFailed, "%w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p := newProgress(s)
	killed := ""
	if v.Kill > 0 {
		killed = fmt.Sprintf(",\nand %s killed with SIGKILL", plural(v.Kill, "leader is", "leaders are"))
	}
	p.tell("%s at %s\non %s. The leader writes to a log, every few milliseconds%s.\n",
		plural(v.Replicas, "process stands for election", "processes stand for election"), st.path, st.where, killed)
	log := filepath.Join(dir, "log")
	republic := &succession.Republic{
		Replicas: v.Replicas, Kills: v.Kill, Log: log,
		Command: func(int) (*exec.Cmd, error) { return st.process(s, "__replica", st.path, log) },
		Watch:   func(e succession.Progress) { v.tell(p, e) },
	}
	result, err := republic.Run(st.ctx)
	return v.conclude(s, p, result, err)
}

func (v *electionDemo) tell(p *progress, e succession.Progress) {
	switch e.Kind {
	case "leads":
		if e.Gap == 0 {
			p.tell("  ★ process %d leads, with token %d", e.PID, e.Token)
			return
		}
		p.tell("  ★ process %d leads, with token %d, %v later", e.PID, e.Token, e.Gap.Round(time.Millisecond))
	case "killed":
		p.tell("  ✗ process %d is killed, %v in office", e.PID, e.Reign.Round(time.Millisecond))
	case "failed":
		p.tell("  ! a replica ended by itself: %v", e.Err)
	}
}

func (v *electionDemo) conclude(s *streams, p *progress, r succession.Result, err error) error {
	out := electionResult{
		ending: endingOf("election", r.Took, err, r.Overlaps == 0 && r.Kills == v.Kill && r.Terms > v.Kill),
		Result: r, Replicas: v.Replicas, MaxGap: measured(r.MaxGap),
	}
	gap := ""
	if r.MaxGap > 0 {
		gap = fmt.Sprintf(", never longer than %v without a leader", r.MaxGap.Round(time.Millisecond))
	}
	p.tell("\n  %s, %s%s; %.1f s.\n  The log has %s, %d of them by a former leader.",
		plural(r.Terms, "term", "terms"), plural(r.Kills, "leader killed", "leaders killed"), gap, r.Took.Seconds(), plural(r.Entries, "entry", "entries"), r.Overlaps)
	if err != nil {
		p.tell("  Not finished: %s.", out.Error)
	}
	return s.outcome(out, out.OK)
}

// replicaVerb is one candidate process of the election demo.
type replicaVerb struct {
	Path string `arg:""`
	Log  string `arg:""`
}

// Run stands for election until standard input ends.
func (v *replicaVerb) Run(s *streams, c *connection) error {
	return c.connected(func(client *coord.Client) error {
		e, err := election.New(client, v.Path)
		if err != nil {
			return err
		}
		r := succession.Replica{Log: v.Log, In: s.in, Out: s.out, Run: func(ctx context.Context, lead succession.Lead) error {
			return e.Run(ctx, nil, func(ctx context.Context, t *election.Term) error { return lead(ctx, t.Token(), t.Err) })
		}}
		return r.Serve(context.Background())
	})
}
