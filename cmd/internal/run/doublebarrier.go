package run

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
)

// exitMissing: CMD succeeded, and others of the round did not.
const exitMissing = 79

type DoubleBarrierVerb struct {
	N         int            `short:"n" name:"members" required:"" placeholder:"N" help:"How many start together and finish together."`
	Next      bool           `help:"If a round is under way, wait for a later one instead of exiting with 75."`
	Least     int            `placeholder:"K" help:"After --last-call, begin with at least K members."`
	LastCall  time.Duration  `placeholder:"D" default:"1m" help:"How long to wait for more than --least."`
	Results   bool           `help:"CMD writes its result into the file COORD_RESULT; show all results."`
	Report    *time.Duration `placeholder:"D" positive:"" help:"Report each D on standard error who has come and finished."`
	Timeout   *time.Duration `placeholder:"D" positive:"" help:"Wait for D at most, connecting included, then exit with 124."`
	KillAfter *time.Duration `placeholder:"D" positive:"" help:"The time from TERM to KILL when CMD has to end. Default: a sixth of the session timeout."`
	OnRevoke  string         `enum:"term,ignore" default:"term" help:"When another client asks for the place: end CMD (term), or go on (ignore)."`
	Path      conn.NodePath  `arg:"" predictor:"path" help:"The barrier's path."`
	commandLine
	limits
	verbosely
}

// Help returns what does not fit into the list of options.
func (*DoubleBarrierVerb) Help() string {
	return `CMD starts when N processes have come, and this process exits when the commands of all of them have ended. CMD gets COORD_PATH, COORD_NODE, COORD_ROUND (1, 2, …), COORD_INDEX (0 to N-1, different for each) and COORD_MEMBERS (N) in its environment. When it fails, this process exits at once and is missing to the others.

Exit status: 0 if all N commands succeeded; CMD's if it failed; 79 if it succeeded, but others failed, died or gave up; 128+n if signal n ended it; 126 or 127 if it cannot be run; 76 if the place was lost, or asked for, before CMD ended; 75 a round is under way; 124 not all N came in time; 69 no session with the servers; 64 usage; 125 if something else kept CMD from being run.`
}

// Run waits for the others, runs the command, and waits for the others again.
func (v *DoubleBarrierVerb) Run(s *term.Streams, c *conn.Connection) error {
	p := &barrierTask{verb: v, streams: s}
	defer func() { _ = os.Remove(p.file) }() // there may be none
	return (&job{
		task: p, late: fmt.Sprintf("not all %d came", v.N), verbosely: v.verbosely,
		Paths: conn.NodePaths{v.Path}, commandLine: v.commandLine, limits: v.limits, Timeout: v.Timeout,
		KillAfter: v.KillAfter, IgnoreRevoke: v.OnRevoke == "ignore",
	}).run(s, c)
}

// Validate is called by kong.
func (v *DoubleBarrierVerb) Validate() error {
	if v.Least < 0 || v.Least > v.N || v.LastCall < 0 {
		return fmt.Errorf(
			"--least %d --last-call %v: a round of at most %d can begin with 1 to %d, and --last-call is at least 0", v.Least,
			v.LastCall, v.N, v.N)
	}
	return v.commandLine.Validate()
}

// barrierTask is the task of a command in a round.
type barrierTask struct {
	verb    *DoubleBarrierVerb
	streams *term.Streams
	barrier *doublebarrier.Barrier
	member  *doublebarrier.Member
	file    string // for the result, or ""
	results [][]byte
}

func (p *barrierTask) acquire(ctx context.Context, _ *conn.Connection, client *coord.Client) (holding, error) {
	var opts []doublebarrier.Option
	if p.verb.Next {
		opts = append(opts, doublebarrier.WaitForNextRound())
	}
	if p.verb.Least > 0 {
		opts = append(opts, doublebarrier.AtLeast(p.verb.Least, p.verb.LastCall))
	}
	b, err := doublebarrier.New(client, string(p.verb.Path), p.verb.N, opts...)
	if err != nil {
		return holding{}, err
	}
	if own, err := ownAt(ctx, client, string(p.verb.Path)); err != nil || p.verb.Next && len(own) > 0 {
		return holding{}, cmp.Or(err, underItself(p.verb.Path, fmt.Sprint(own)))
	}
	p.barrier = b
	told := p.reportEach(ctx, p.whoHasCome)
	p.member, err = b.Enter(ctx)
	told()
	switch {
	case errors.Is(err, doublebarrier.ErrLate):
		return holding{}, &term.ExitError{
			Code: term.ExitBusy, Err: fmt.Errorf("%w (--next waits for a place in a later one)", err),
		}
	case err != nil:
		return holding{}, err
	}
	return alone(p.member), nil
}

func (p *barrierTask) name() string {
	return fmt.Sprintf("the place in round %d of %s", p.member.Round(), p.verb.Path)
}

func (p *barrierTask) prepare(cmd *exec.Cmd) error {
	m := p.member
	cmd.Env = append(cmd.Env, "COORD_ROUND="+strconv.FormatInt(m.Round(), 10),
		"COORD_INDEX="+strconv.Itoa(m.Index()), "COORD_MEMBERS="+strconv.Itoa(m.Count()))
	if !p.verb.Results {
		return nil
	}
	file, err := os.CreateTemp("", "zkcoord-result-")
	if err != nil {
		return fmt.Errorf("no file for the result: %w", err)
	}
	p.file = file.Name()
	cmd.Env = append(cmd.Env, "COORD_RESULT="+p.file)
	return file.Close()
}

func (p *barrierTask) discarded() string { return p.file }

// leave waits for the others, and gathers the results, if they are wanted.
func (p *barrierTask) leave(ctx context.Context) error {
	defer p.reportEach(ctx, p.whoHasNotFinished)()
	if !p.verb.Results {
		return p.member.Leave(ctx)
	}
	result, err := os.ReadFile(p.file)
	if err != nil {
		return fmt.Errorf("the result: %w", err)
	}
	p.results, err = p.member.Gather(ctx, result)
	return err
}

// show shows the results.
func (p *barrierTask) show() {
	for i, r := range p.results {
		if len(r) > 0 && !p.streams.JSON {
			_, _ = fmt.Fprintf(p.streams.Out, "%d\t%s\n", i, p.inOneLine(r)) // a failure is told at the end
		}
	}
}

// inOneLine quotes a result that has several lines, or begins with a quote, so
// that no part of it looks like another member's line.
func (p *barrierTask) inOneLine(result []byte) string {
	text := string(bytes.TrimSuffix(result, []byte("\n")))
	if strings.ContainsAny(text, "\n\r") || strings.HasPrefix(text, `"`) {
		return strconv.Quote(text)
	}
	return p.streams.Shown([]byte(text))
}

// reportEach reports something again and again, with --report, until the
// returned function is called.
func (p *barrierTask) reportEach(ctx context.Context, what func(ctx context.Context) (string, error)) (end func()) {
	if p.verb.Report == nil {
		return func() {}
	}
	ctx, end = context.WithCancel(ctx)
	go func() {
		tick := time.NewTicker(*p.verb.Report)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if text, err := what(ctx); err == nil && text != "" && ctx.Err() == nil {
				p.streams.Note("%s: %s", p.verb.Path, text)
			}
		}
	}()
	return end
}

func (p *barrierTask) whoHasCome(ctx context.Context) (string, error) {
	status, err := p.barrier.Status(ctx)
	return fmt.Sprintf("%d of %d have come", len(status.Waiting), p.verb.N), err
}

func (p *barrierTask) whoHasNotFinished(ctx context.Context) (string, error) {
	absent, err := p.barrier.Absent(ctx)
	if len(absent) == 0 {
		return "", err
	}
	who := make([]string, len(absent))
	for i, a := range absent {
		who[i] = fmt.Sprintf("%d (%s)", a.Index, cmp.Or(a.Owner, "gone"))
	}
	return fmt.Sprintf("%d of %d have not finished: %s", len(absent), p.member.Count(), strings.Join(who, ", ")), err
}

// giveBack makes this member missing.
func (p *barrierTask) giveBack() error {
	p.abandon(errors.New("the command was not run"))
	return nil
}

// abandon makes this member missing, and says why. If that fails, the others
// wait until the session has expired.
func (p *barrierTask) abandon(cause error) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseWithin)
	defer cancel()
	_ = p.member.GiveUp(ctx, cause)
}

// complete leaves if the command has succeeded: it waits for the others, until
// a signal comes. A command that was asked to end may only have tidied up: its
// member is missing.
func (p *barrierTask) complete(status int, asked bool, patience func() (context.Context, func())) (int, error) {
	var cause error
	defer func() { p.abandon(cause) }() // has an effect unless it has left
	switch {
	case status != term.ExitOK:
		cause = fmt.Errorf("its command ended with status %d", status)
		return status, nil
	case asked:
		cause = errors.New("another client asked for the place before the command ended")
		return term.ExitLost, cause
	}
	ctx, over := patience()
	var sig term.Signalled
	if errors.As(context.Cause(ctx), &sig) {
		over()
		cause = sig
		return 128 + int(sig.Signal), nil
	}
	err := p.leave(ctx)
	over()
	p.show()
	cause = err
	switch {
	case err == nil:
		return term.ExitOK, nil
	case errors.Is(err, doublebarrier.ErrIncomplete):
		return exitMissing, err
	case errors.As(context.Cause(ctx), &sig):
		return 128 + int(sig.Signal), errors.New("left without waiting for the others")
	case errors.Is(err, coord.ErrLost):
		return term.ExitLost, err
	}
	return term.ExitOwnFault, err
}

func (p *barrierTask) summary(inside float64, err error) map[string]any {
	missing, reasons := []int{}, map[int]string{}
	var incomplete *doublebarrier.IncompleteError
	if errors.As(err, &incomplete) {
		missing = incomplete.Missing
		maps.Copy(reasons, incomplete.Reasons)
	}
	m := p.member
	summary := map[string]any{
		"node": m.Node(), "round": m.Round(), "index": m.Index(), "members": m.Count(), "missing": missing,
		"reasons": reasons, "inside": inside,
	}
	if p.verb.Results {
		results := make([]any, len(p.results))
		for i, r := range p.results {
			switch {
			case term.NotText(r) != nil:
				results[i] = term.DataOf(r)
			case len(r) > 0:
				results[i] = string(r)
			}
		}
		summary["results"] = results
	}
	return summary
}

// look says how many have come, or are in the round that is under way.
func (p *barrierTask) look(ctx context.Context, client *coord.Client, own look.Names) (look.Situation, error) {
	b, err := doublebarrier.New(client, string(p.verb.Path), p.verb.N)
	if err != nil {
		return look.Situation{}, err
	}
	status, err := b.Status(ctx)
	if err != nil {
		return look.Situation{}, err
	}
	there, came := status.Waiting, len(status.Waiting)
	if len(own) > 0 && !slices.ContainsFunc(there, func(node string) bool { return own[path.Base(node)] }) {
		came++ // this one did, and has left
	}
	text := fmt.Sprintf("%d of %d have come", came, status.Size)
	if status.Open && len(status.Inside) > 0 {
		there, came = status.Inside, len(status.Inside)
		text = fmt.Sprintf("round %d is under way: %d of its %d members are there", status.Round, came, status.Size)
	}
	var those []coord.Contender
	for _, node := range there {
		those = append(those, look.LineOf([]string{path.Base(node)})...)
	}
	first, err := look.RoundOf(status).Read(ctx, client, string(p.verb.Path), those)
	if len(first) > 0 {
		text += ", first " + first[0].Who()
	}
	return look.Situation{Text: text, Key: text, Fields: map[string]any{
		"there": first, "came": came, "members": status.Size, "round": status.Round,
	}}, err
}
