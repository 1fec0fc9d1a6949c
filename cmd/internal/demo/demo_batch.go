package demo

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/demo/batch"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
)

type batchDemo struct {
	Members int      `default:"4" help:"How many processes share the work."`
	Kill    int      `default:"1" help:"How many rounds to spoil by killing a process with SIGKILL while it counts."`
	Files   []string `arg:"" optional:"" help:"Text files whose words to count. Default: those of the repository around the current directory, or else a text of its own."`

	dir string // of that text
}

// batchResult is the last line of the demo.
type batchResult struct {
	ending
	batch.Result
	Members int `json:"members"`
	Files   int `json:"files"`
}

// check finds the files, and invalid options.
func (v *batchDemo) check(session time.Duration) error {
	switch {
	case v.Members < 1 || v.Members > 50:
		return term.UsageError("--members %d: it must be between 1 and 50", v.Members)
	case v.Kill < 0 || time.Duration(v.Kill) > demoLimit/2/session:
		return term.UsageError("--kill %d: after each kill the others wait for a session time-out (%v), and the demo ends "+
			"within a minute; kill at most %d", v.Kill, session, demoLimit/2/session)
	}
	if len(v.Files) == 0 {
		return v.choose()
	}
	for i, file := range v.Files {
		whole, err := filepath.Abs(file)
		if err != nil {
			return term.UsageError("%w", err)
		}
		if info, err := os.Stat(whole); err != nil {
			return term.UsageError("%w", err)
		} else if info.IsDir() {
			return term.UsageError("%s is a directory: name files", file)
		}
		v.Files[i] = whole
	}
	return nil
}

// choose takes the files that are here, or if there are none, a text that is
// written to a directory of its own.
func (v *batchDemo) choose() (err error) {
	if v.Files, err = batch.OwnFiles(); err == nil && len(v.Files) > 0 {
		return nil
	}
	if v.dir, err = os.MkdirTemp("", "coorddemo-batch-"); err == nil {
		v.Files, err = batch.WriteText(v.dir)
	}
	if err != nil {
		return term.ExitWith(term.ExitFailed, "there are no text files here, and none can be written: %w", err)
	}
	return nil
}

// Run plays it.
func (v *batchDemo) Run(s *term.Streams, c *conn.Connection) error {
	defer func() { _ = os.RemoveAll(v.dir) }()
	st, err := newStage(c, "batch", v.check)
	if err != nil {
		return err
	}
	defer st.close()
	p := term.NewProgress(s)
	v.introduce(p, st)
	b := &batch.Batch{
		Members: v.Members, Kills: v.Kill, Files: v.Files, Path: st.path, Client: st.client,
		Command: func(int) (*exec.Cmd, error) {
			return st.process(s, "__counter", fmt.Sprintf("--n=%d", v.Members), st.path)
		},
		Watch: func(e batch.Progress) { v.tell(p, e) },
	}
	result, err := b.Run(st.ctx)
	return v.conclude(s, p, result, err)
}

func (v *batchDemo) introduce(p *term.Progress, st *stage) {
	meet := "They meet at the double barrier\n%s/barrier on %s,\ncount a share each, and meet again; then one adds up."
	if v.Members == 1 {
		meet = "It has the double barrier\n%s/barrier on %s to itself."
	}
	p.Tell("%s the words of %s. "+meet, term.Plural(v.Members, "process counts", "processes count"),
		term.Plural(len(v.Files), "file", "files"), st.path, st.where)
	switch {
	case v.Kill == 1:
		p.Tell("Once, a process is killed with SIGKILL while it counts.\n")
	case v.Kill > 1:
		p.Tell("%d times, a process is killed with SIGKILL while it counts.\n", v.Kill)
	default:
		p.Tell("")
	}
}

func (v *batchDemo) tell(p *term.Progress, e batch.Progress) {
	switch e.Kind {
	case "entered":
		p.Tell("  ▶ round %d: %s in", e.Round, term.Both(v.Members, "the one process is", "all %d are"))
	case "killed":
		p.Tell("  ✗ killed process %d (pid %d) while it counted", e.Index, e.PID)
	case "incomplete":
		p.Tell("  ! round %d is over and incomplete: %s told so, and nobody adds up", e.Round,
			term.Both(e.Left, "the one that is left was", "all %d that are left were"))
	case "counted":
		p.Tell("  ✓ process %d counted %d words in %s", e.Index, e.Words, term.Plural(e.Files, "file", "files"))
	}
}

func (v *batchDemo) conclude(s *term.Streams, p *term.Progress, r batch.Result, err error) error {
	out := batchResult{
		ending: endingOf("batch", r.Took, err, r.Words == r.Expected && r.Kills == v.Kill),
		Result: r, Members: v.Members, Files: len(v.Files),
	}
	p.Tell("\n  %d words counted together, %d by one process alone; %s, %s killed, %.1f s.", r.Words, r.Expected,
		term.Plural(r.Rounds, "round", "rounds"), term.Plural(r.Kills, "process", "processes"), r.Took.Seconds())
	switch {
	case err != nil:
		p.Tell("  Not finished: %s.", out.Error)
	case out.OK && r.Kills > 0 && v.Members > 1:
		p.Tell("  Nobody added up what was not complete: all were told the same.")
	case out.OK && r.Kills > 0:
		p.Tell("  Nobody added up what was not complete.")
	}
	return outcome(s, out, out.OK)
}

// CounterVerb is one process of the batch demo.
type CounterVerb struct {
	N    int
	Path conn.NodePath `arg:""`
}

// Run counts until standard input ends.
func (v *CounterVerb) Run(s *term.Streams, c *conn.Connection) error {
	return c.Connected(func(client *coord.Client) error {
		counter := batch.Counter{Members: v.N, Path: string(v.Path), Client: client, In: s.In, Out: s.Out}
		return counter.Serve(context.Background())
	})
}
