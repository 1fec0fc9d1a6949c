package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/demo/crew"
)

type batchDemo struct {
	Members int      `default:"4" help:"How many processes share the work."`
	Kill    int      `default:"1" help:"How many rounds to spoil by killing a process with SIGKILL while it counts."`
	Files   []string `arg:"" optional:"" help:"Text files whose words to count. Default: those of the repository around the current directory."`
}

// batchResult is the last line of the demo.
type batchResult struct {
	Demo     string  `json:"demo"`
	Members  int     `json:"members"`
	Files    int     `json:"files"`
	Words    int     `json:"words"`    // as merged by one of the processes
	Expected int     `json:"expected"` // as counted by a single process
	Rounds   int     `json:"rounds"`
	Kills    int     `json:"kills"`
	Seconds  float64 `json:"seconds"`
	Error    string  `json:"error,omitempty"`
	OK       bool    `json:"ok"`
}

// check finds the files, and what cannot be right.
func (v *batchDemo) check(session time.Duration) error {
	switch {
	case v.Members < 1 || v.Members > 50:
		return usageError("--members %d: it must be between 1 and 50", v.Members)
	case v.Kill < 0 || time.Duration(v.Kill) > demoLimit/2/session:
		return usageError("--kill %d: after each kill the others wait for a session time-out (%v), and the demo ends "+
			"within a minute; kill at most %d", v.Kill, session, demoLimit/2/session)
	}
	if len(v.Files) == 0 {
		files, err := ownFiles()
		if err != nil || len(files) == 0 {
			return usageError("there are no text files here: name some")
		}
		v.Files = files
	}
	for i, file := range v.Files {
		whole, err := filepath.Abs(file)
		if err != nil {
			return usageError("%w", err)
		}
		if info, err := os.Stat(whole); err != nil {
			return usageError("%w", err)
		} else if info.IsDir() {
			return usageError("%s is a directory: name files", file)
		}
		v.Files[i] = whole
	}
	return nil
}

// Run plays it.
func (v *batchDemo) Run(s *streams, c *connection) error {
	st, err := c.stage("batch", v.check)
	if err != nil {
		return err
	}
	defer st.close()
	p := newProgress(s)
	b := &batch{
		verb: v, streams: s, stage: st, progress: p, crew: crew.New[countNews](), members: map[int]*crew.Member{},
	}
	p.tell("%s count the words of %s. They meet at the double barrier\n%s/barrier on %s,\n"+
		"count a share each, and meet again; then one adds up.", plural(v.Members, "process", "processes"),
		plural(len(v.Files), "file", "files"), st.path, st.where)
	switch {
	case v.Kill == 1:
		p.tell("Once, a process is killed with SIGKILL while it counts.\n")
	case v.Kill > 1:
		p.tell("%d times, a process is killed with SIGKILL while it counts.\n", v.Kill)
	default:
		p.tell("")
	}
	begun := time.Now()
	err = b.run(st.ctx)
	b.crew.Close(func(*crew.Member, *countNews) {})
	p.clear()
	return v.conclude(s, p, b, time.Since(begun), err)
}

func (v *batchDemo) conclude(s *streams, p *progress, b *batch, took time.Duration, err error) error {
	out := batchResult{
		Demo: "batch", Members: v.Members, Files: len(v.Files), Words: b.words, Rounds: int(b.round), Kills: b.kills, Seconds: seconds(took),
	}
	for _, file := range v.Files {
		words, failed := countWords(file)
		out.Expected += words
		err = errors.Join(err, failed)
	}
	if err != nil {
		out.Error = briefly(err).Error()
	}
	out.OK = err == nil && out.Words == out.Expected && out.Kills == v.Kill
	p.tell("\n  %d words counted together, %d by one process alone; %s, %s killed, %.1f s.", out.Words, out.Expected,
		plural(out.Rounds, "round", "rounds"), plural(out.Kills, "process", "processes"), took.Seconds())
	switch {
	case err != nil:
		p.tell("  Not finished: %s.", out.Error)
	case out.OK && out.Kills > 0:
		p.tell("  Nobody added up what was not complete: all were told the same.")
	}
	return s.outcome(out, out.OK)
}

// batch is the processes that count, and what they have told.
type batch struct {
	verb     *batchDemo
	streams  *streams
	stage    *stage
	progress *progress
	crew     *crew.Crew[countNews]

	round   int64                // the newest
	members map[int]*crew.Member // of that round, by index
	told    int                  // members that have told of its end
	victims int                  // members killed in it
	merged  bool
	words   int
	kills   int
}

func (b *batch) run(ctx context.Context) error {
	if err := b.stage.client.EnsureDir(ctx, b.stage.path+"/counts"); err != nil {
		return err
	}
	for range b.verb.Members {
		if err := b.start(); err != nil {
			return err
		}
	}
	for !b.merged || b.told < b.verb.Members-b.victims {
		select {
		case e := <-b.crew.Events():
			if err := b.hear(e); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// start runs a counting process, which gets the names of the files.
func (b *batch) start() error {
	m, err := b.crew.Start(func(int) (*exec.Cmd, error) {
		return b.stage.process(b.streams, "__counter", fmt.Sprintf("--n=%d", b.verb.Members), b.stage.path)
	})
	if err != nil {
		return err
	}
	files, err := json.Marshal(b.verb.Files)
	if err == nil {
		m.Say(string(files))
	}
	return err
}

// hear takes in what a process tells, or its end.
func (b *batch) hear(e crew.Event[countNews]) error {
	if e.Message == nil {
		if err := b.crew.Ended(e); err != nil || e.From.Killed() {
			return err
		}
		return e.Failure()
	}
	news := e.Message
	if news.Round > b.round {
		b.round, b.told, b.victims = news.Round, 0, 0
		clear(b.members)
	}
	switch news.What {
	case roundEntered:
		b.members[news.Index] = e.From
		return b.entered()
	case roundIncomplete:
		if b.told++; b.told == 1 {
			b.progress.tell("  ! round %d is over and incomplete: all %d that are left were told so, and nobody adds up",
				news.Round, b.verb.Members-news.Missing)
		}
	case roundComplete:
		b.told++
		b.progress.tell("  ✓ process %d counted %d words in %s", news.Index, news.Words, plural(news.Files, "file", "files"))
	case roundMerged:
		b.merged, b.words = true, news.Words
	}
	return nil
}

// entered tells of a round that all have entered, and kills one of them if that is due.
func (b *batch) entered() error {
	if len(b.members) < b.verb.Members {
		return nil
	}
	b.progress.tell("  ▶ round %d: all %d are in", b.round, b.verb.Members)
	if b.kills == b.verb.Kill {
		return nil
	}
	victim := b.members[b.verb.Members-1]
	victim.Kill()
	b.kills++
	b.victims++
	b.progress.tell("  ✗ killed process %d (pid %d) while it counted", b.verb.Members-1, victim.PID())
	return b.start()
}
