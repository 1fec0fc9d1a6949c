package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/once"
)

// exitGivenUp: CMD was not run, for the job was given up before.
const exitGivenUp = 80

// recordWithin bounds what happens after the command has ended.
const recordWithin = 10 * time.Second

type OnceVerb struct {
	AtMostOnce bool           `help:"Never start CMD twice, whatever became of it. The same as --attempts=1."`
	Attempts   *int           `placeholder:"N" help:"Start CMD N times at most, in all processes together."`
	Backoff    time.Duration  `placeholder:"D" help:"The time from a failure to the next attempt; it doubles after each."`
	Keep       *time.Duration `placeholder:"D" positive:"" help:"Forget jobs that ended longer ago than D."`
	KeepLast   *int           `placeholder:"N" help:"Forget jobs that are not of the newest N runs."`
	Try        bool           `help:"Do not wait: exit with 75 if another process runs the job."`
	List       bool           `help:"Show the jobs at PATH, and what became of them."`
	Forget     bool           `help:"Forget what became of KEY: it is done again."`
	Timeout    *time.Duration `placeholder:"D" positive:"" help:"Wait for D at most, connecting included, then exit with 124."`
	KillAfter  *time.Duration `placeholder:"D" positive:"" help:"The time from TERM to KILL when CMD has to end. Default: a sixth of the session timeout."`
	OnRevoke   string         `enum:"term,ignore" default:"term" help:"When another client asks for the lock: end CMD (term), or go on (ignore)."`
	Path       conn.NodePath  `arg:"" predictor:"path" help:"The path of the jobs."`
	Key        string         `arg:"" optional:"" help:"What is to be done once: any text of up to 200 bytes."`
	commandLine
	limits
	verbosely
}

// Help returns what does not fit into the list of options.
func (*OnceVerb) Help() string {
	return `CMD runs unless a CMD of KEY has exited with 0. While another process runs it, this one waits. CMD gets COORD_PATH, COORD_NODE and COORD_TOKEN as with lock, COORD_KEY, and COORD_ATTEMPT (1 the first time) in its environment.

Exit status: 0 if KEY is done, by this process or before; CMD's if it failed; 80 if its attempts are used up; 128+n if signal n ended it; 126 or 127 if it cannot be run; 76 if the job was lost, or asked for, before CMD ended; 75 another process runs it (--try); 124 not done in time; 69 no session with the servers; 64 usage; 125 if something else kept CMD from being run.`
}

// Validate is called by kong.
func (v *OnceVerb) Validate() error {
	switch {
	case v.List && (v.Key != "" || v.Forget || v.Given()):
		return errors.New("--list goes with a path alone")
	case v.List:
		return nil
	case v.Forget && v.Given():
		return errors.New("--forget goes with a path and a key, and runs no command")
	case v.Key == "" && v.Forget:
		return errors.New("which job is to be forgotten? write a key behind the path")
	case v.Forget:
		return nil
	case v.Key == "" || !v.Given():
		return fmt.Errorf(
			"no command to run, or no key: write both behind the path, as in %s once /jobs/migrations v42 -- ./migrate.sh",
			term.Program)
	case v.AtMostOnce && v.Attempts != nil && *v.Attempts != 1:
		return errors.New("--at-most-once is --attempts=1: choose one")
	case v.Backoff != 0 && v.Attempts == nil:
		return errors.New("--backoff goes with --attempts")
	}
	return v.commandLine.Validate()
}

// onRecord fails if nothing is on record of the key, which may be misspelt.
func (v *OnceVerb) onRecord(ctx context.Context, client *coord.Client, o *once.Once) error {
	line, err := o.Line(v.Key)
	if err != nil {
		return err
	}
	_, there, err := client.Synced().Exists(ctx, line.Dir+"/record")
	if err == nil && !there {
		err = term.ExitWith(term.ExitFailed, "nothing is on record of %q at %s", v.Key, v.Path)
	}
	return err
}

// Run runs the command unless it was done, lists the jobs, or forgets one.
func (v *OnceVerb) Run(s *term.Streams, c *conn.Connection) error {
	switch {
	case v.List:
		return v.list(s, c)
	case v.Forget:
		return c.With(func(ctx context.Context, client *coord.Client) error {
			o, err := v.open(client)
			if err == nil {
				err = v.onRecord(ctx, client, o)
			}
			if err == nil {
				err = o.Forget(ctx, v.Key)
			}
			if errors.Is(err, coord.ErrBusy) {
				return term.ExitWith(term.ExitBusy, "%q is being run: %w", v.Key, err)
			}
			if err != nil {
				return err
			}
			return s.Print(map[string]any{"path": string(v.Path), "key": v.Key}, "")
		})
	}
	e := &onceTask{verb: v}
	j := &job{
		task: e, late: "not done", verbosely: v.verbosely,
		Paths: conn.NodePaths{v.Path}, commandLine: v.commandLine, limits: v.limits, Timeout: v.Timeout,
		KillAfter: v.KillAfter, IgnoreRevoke: v.OnRevoke == "ignore",
	}
	err := j.run(s, c)
	if e.run != nil || e.found.State != once.Done {
		return err
	}
	summary := jobSummary(e.found)
	summary["path"], summary["status"], summary["ran"] = v.Path, term.ExitOK, false
	s.Tell(summary)
	if !s.JSON {
		s.Note("%q was done %s ago by %s, at attempt %d, and ended with status 0", v.Key,
			term.Ago(e.found.Begun.Add(e.found.Took)), term.Plain(e.found.By), e.found.Attempt)
	}
	return nil
}

func (v *OnceVerb) open(client *coord.Client) (*once.Once, error) {
	var opts []once.Option
	if v.AtMostOnce {
		opts = append(opts, once.Attempts(1, 0))
	}
	if v.Attempts != nil {
		opts = append(opts, once.Attempts(*v.Attempts, v.Backoff))
	}
	if v.Keep != nil {
		opts = append(opts, once.Keep(*v.Keep))
	}
	if v.KeepLast != nil {
		opts = append(opts, once.KeepLast(*v.KeepLast))
	}
	return once.New(client, string(v.Path), opts...)
}

// onceTask is the task of a command that runs once.
type onceTask struct {
	verb  *OnceVerb
	run   *once.Run   // nil if the command is not to run
	found once.Result // then
}

func (e *onceTask) acquire(ctx context.Context, c *conn.Connection, client *coord.Client) (holding, error) {
	o, err := e.verb.open(client)
	if err != nil {
		return holding{}, err
	}
	line, err := o.Line(e.verb.Key)
	if err != nil {
		return holding{}, err
	}
	if own, err := ownAt(ctx, client, line.Dir); err != nil || len(own) > 0 && !e.verb.Try {
		return holding{}, cmp.Or(err, underItself(conn.NodePath(line.Dir), fmt.Sprint(own)))
	}
	if e.verb.Try {
		err = try(ctx, c,
			func(ctx context.Context) (err error) { e.run, e.found, err = o.TryBegin(ctx, e.verb.Key); return err })
	} else {
		e.run, e.found, err = o.Begin(ctx, e.verb.Key)
	}
	switch {
	case errors.Is(err, once.ErrFailed), errors.Is(err, once.ErrUnfinished):
		fields := jobSummary(e.found)
		fields["ran"] = false
		return holding{}, &term.ExitError{
			Code: exitGivenUp, Err: fmt.Errorf("%w; --forget has it done again", err), Fields: fields,
		}
	case err != nil:
		return holding{}, err
	case e.run == nil:
		return holding{}, &term.ExitError{Code: term.ExitOK} // Run says why
	}
	return alone(e.run), nil
}

func (e *onceTask) look(ctx context.Context, client *coord.Client, own look.Names) (look.Situation, error) {
	o, err := once.New(client, string(e.verb.Path))
	if err != nil {
		return look.Situation{}, err
	}
	line, err := o.Line(e.verb.Key)
	if err != nil {
		return look.Situation{}, err
	}
	dir := conn.NodePath(line.Dir)
	t := &lockTask{paths: conn.NodePaths{dir}, plain: true}
	t.at.Store(&dir)
	return t.look(ctx, client, own)
}

func (e *onceTask) name() string { return fmt.Sprintf("the lock of %q", e.verb.Key) }

func (e *onceTask) prepare(cmd *exec.Cmd) error {
	cmd.Env = append(cmd.Env, "COORD_KEY="+e.verb.Key, "COORD_ATTEMPT="+strconv.Itoa(e.run.Attempt))
	return nil
}

// giveBack puts on record that the command was not run. The attempt counts.
func (e *onceTask) giveBack() error { return e.end(errors.New("the command was not run")) }

func (e *onceTask) end(failure error) error {
	ctx, cancel := context.WithTimeout(context.Background(), recordWithin)
	defer cancel()
	_, err := e.run.End(ctx, nil, failure)
	return err
}

// complete puts the end on record. A command that was asked to end may only
// have tidied up.
func (e *onceTask) complete(status int, asked bool, _ func() (context.Context, func())) (int, error) {
	switch {
	case asked && status == term.ExitOK:
		failure := errors.New("another client asked for the lock before the command ended")
		return term.ExitLost, cmp.Or(e.end(failure), failure)
	case status != term.ExitOK:
		return status, e.end(fmt.Errorf("exit status %d", status))
	}
	if err := e.end(nil); err != nil {
		return term.ExitLost, fmt.Errorf("the command succeeded, but may be run again: %w", err)
	}
	return term.ExitOK, nil
}

func (e *onceTask) summary(held float64, _ error) map[string]any {
	summary := alone(e.run).summary()
	summary["key"], summary["attempt"], summary["ran"], summary["held"] = e.verb.Key, e.run.Attempt, true, held
	return summary
}

// jobSummary is a job in JSON.
func jobSummary(r once.Result) map[string]any {
	summary := map[string]any{
		"key": r.Key, "state": r.State, "attempt": r.Attempt, "by": r.By, "begun": r.Begun, "took": term.Seconds(r.Took),
	}
	if r.Err != "" {
		summary["failure"] = r.Err
	}
	return summary
}

func (v *OnceVerb) list(s *term.Streams, c *conn.Connection) error {
	return c.With(func(ctx context.Context, client *coord.Client) error {
		o, err := v.open(client)
		if err != nil {
			return err
		}
		if err := v.Path.NoteAbsent(ctx, s, client); err != nil {
			return err
		}
		return listJobs(ctx, s, o, "JOB", "jobs", map[string]any{"path": string(v.Path)}, "")
	})
}

// listJobs shows what is on record, the oldest first, and then the rest. The
// jobs are called by these names in the table's head and in the summary.
func listJobs(
	ctx context.Context, s *term.Streams, o *once.Once, head, called string, summary map[string]any, rest string,
) error {
	var all []once.Result
	for r, err := range o.List(ctx) {
		if err != nil {
			return err
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b once.Result) int { return cmp.Or(a.Begun.Compare(b.Begun), cmp.Compare(a.Key, b.Key)) })
	stories := make([]map[string]any, len(all))
	t := term.Table{Heads: []string{head, "STATE", "ATTEMPT", "AGE", "TOOK", "BY"}, About: "FAILURE"}
	for i, r := range all {
		stories[i] = jobSummary(r)
		took := ""
		if r.State == once.Done || r.State == once.Failed {
			took = term.Age(r.Took.Seconds())
		}
		t.Add(term.Plain(r.Err), term.Plain(r.Key), string(r.State), strconv.Itoa(r.Attempt),
			term.Ago(r.Begun), took, term.Plain(r.By))
	}
	if s.JSON || len(all) == 0 {
		summary[called] = stories
		return s.Print(summary, "%s", "no "+called+"\n"+rest)
	}
	page := s.Page()
	if err := t.Write(page); err != nil {
		return err
	}
	_, err := io.WriteString(page, rest)
	return err
}
