package cli

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/zkcoord/zkcoord/cmd/coorddemo/internal/self"
	"github.com/zkcoord/zkcoord/coord"
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
			return usageError("no text files here: name some (%v)", err)
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
	conn, where, stop, err := c.forDemo()
	if err != nil {
		return err
	}
	defer stop()
	if err := v.check(conn.SessionTimeout); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), demoLimit, errors.New("out of time"))
	defer cancel()
	ctx, stopSignals := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stopSignals()
	p := newProgress(s)
	b := &batch{
		verb: v, streams: s, conn: &conn, progress: p, path: "/coorddemo/batch-" + strings.ToLower(rand.Text()[:8]),
		reports: make(chan batchReport, 64), members: map[int]*exec.Cmd{},
	}
	p.tell("%s count the words of %s. They meet at the double barrier\n%s/barrier on %s,\n"+
		"count a share each, and meet again; then one adds up.", plural(v.Members, "process", "processes"),
		plural(len(v.Files), "file", "files"), b.path, where)
	if v.Kill > 0 {
		p.tell("%s, a process is killed with SIGKILL while it counts.\n", map[bool]string{true: "Once", false: "Again and again"}[v.Kill == 1])
	}
	begun := time.Now()
	err = b.run(ctx)
	p.clear()
	return v.conclude(s, p, b, time.Since(begun), err)
}

func (v *batchDemo) conclude(s *streams, p *progress, b *batch, took time.Duration, err error) error {
	out := batchResult{
		Demo: "batch", Members: v.Members, Files: len(v.Files), Words: b.words, Rounds: b.round, Kills: b.kills, Seconds: seconds(took),
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
	conn     *connection
	path     string
	progress *progress
	reports  chan batchReport
	running  sync.WaitGroup

	round   int               // the newest
	members map[int]*exec.Cmd // of that round, by index
	told    int               // members that have told of its end
	victims int               // members killed in it
	merged  bool
	words   int
	kills   int
}

// batchReport is a line of a process: what it has done, the round, its index, and two numbers more; or its end.
type batchReport struct {
	from *exec.Cmd
	line string
	err  error
}

func (b *batch) run(ctx context.Context) error {
	client, err := b.conn.open(ctx)
	if err != nil {
		return err
	}
	defer hangUp(client)
	defer b.forget(client)
	if err := client.EnsureDir(ctx, b.path+"/counts"); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer b.running.Wait()
	defer cancel() // ends all processes
	for range b.verb.Members {
		if err := b.start(ctx); err != nil {
			return err
		}
	}
	for !b.merged || b.told < b.verb.Members-b.victims {
		select {
		case r := <-b.reports:
			if err := b.hear(ctx, r); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// start runs a counting process and reports its lines until ctx ends it.
func (b *batch) start(ctx context.Context) error {
	cmd, err := self.Command("__counter", "--zk", b.conn.ZK, "--session-timeout", b.conn.SessionTimeout.String(),
		"--connect-timeout", b.conn.ConnectTimeout.String(), "--dialect", b.conn.Dialect, fmt.Sprintf("--n=%d", b.verb.Members), b.path)
	if err != nil {
		return err
	}
	files, err := json.Marshal(b.verb.Files)
	if err != nil {
		return err
	}
	cmd.Stdin, cmd.Stderr = bytes.NewReader(files), b.streams.err
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	b.running.Go(func() {
		defer stop()
		for lines := bufio.NewScanner(out); lines.Scan(); {
			b.report(ctx, batchReport{from: cmd, line: lines.Text()})
		}
		if err := cmd.Wait(); err != nil {
			b.report(ctx, batchReport{from: cmd, err: err})
		}
	})
	return nil
}

func (b *batch) report(ctx context.Context, r batchReport) {
	select {
	case b.reports <- r:
	case <-ctx.Done():
	}
}

// hear takes a report in.
func (b *batch) hear(ctx context.Context, r batchReport) error {
	if r.err != nil {
		if r.from.ProcessState.ExitCode() >= 0 {
			return fmt.Errorf("a process ended by itself: %w", r.err)
		}
		return nil // killed
	}
	var what string
	var round, index, files, words int
	_, _ = fmt.Sscan(r.line, &what, &round, &index, &files, &words)
	if round > b.round {
		b.round, b.told, b.victims = round, 0, 0
		clear(b.members)
	}
	switch what {
	case "entered":
		b.members[index] = r.from
		return b.entered(ctx)
	case "incomplete":
		if b.told++; b.told == 1 {
			b.progress.tell("  ! round %d is over and incomplete: all %d that are left were told so, and nobody adds up",
				round, b.verb.Members-files)
		}
	case "complete":
		b.told++
		b.progress.tell("  ✓ process %d counted %d words in %s", index, words, plural(files, "file", "files"))
	case "merged":
		b.merged, b.words = true, words
	}
	return nil
}

// entered tells of a round that all have entered, and kills one of them if that is due.
func (b *batch) entered(ctx context.Context) error {
	if len(b.members) < b.verb.Members {
		return nil
	}
	b.progress.tell("  ▶ round %d: all %d are in", b.round, b.verb.Members)
	if b.kills == b.verb.Kill {
		return nil
	}
	victim := b.members[b.verb.Members-1]
	if err := victim.Process.Kill(); err != nil {
		return err
	}
	b.kills++
	b.victims++
	b.progress.tell("  ✗ killed process %d (pid %d) while it counted", b.verb.Members-1, victim.Process.Pid)
	return b.start(ctx)
}

// forget removes what the demo leaves on servers that are not its own.
func (b *batch) forget(client *coord.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	counts, _ := client.Children(ctx, b.path+"/counts")
	for _, name := range counts {
		_ = client.Delete(ctx, b.path+"/counts/"+name, -1)
	}
	for _, node := range []string{"/counts", "/barrier/ready", "/barrier", ""} {
		_ = client.Delete(ctx, b.path+node, -1)
	}
}
