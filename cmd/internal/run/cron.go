package run

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // for images that have no time zones

	"github.com/robfig/cron/v3"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	coordcron "github.com/zkcoord/zkcoord/coord/cron"
)

// What --missed and --overlap stand for.
const (
	lateSlot      = time.Minute // is missed
	allMissed     = 1000
	slotsTogether = 16
)

type CronVerb struct {
	Missed     string         `enum:"skip,last,all" default:"last" help:"Which slots to run that nobody began in time: none that is a minute late (skip), the last one, or all (at most 1000)."`
	Overlap    string         `enum:"queue,skip,beside" default:"queue" help:"When a slot is due while one runs: it waits, and is missed if the next is due by then (queue), is left out (skip), or another process runs it (beside)."`
	Timezone   string         `placeholder:"ZONE" default:"UTC" help:"UTC, or a name such as Europe/Berlin."`
	Jitter     *time.Duration `placeholder:"D" help:"Begin each slot up to D later, in all processes alike."`
	Attempts   *int           `placeholder:"N" help:"Run a slot whose CMD failed up to N times in all."`
	Backoff    time.Duration  `placeholder:"D" help:"The time from a failure to the next attempt; it doubles after each."`
	AtMostOnce bool           `help:"Never start CMD twice, whatever became of it. The same as --attempts=1."`
	Keep       *time.Duration `placeholder:"D" positive:"" help:"Forget slots that ended longer ago than D, not all but the newest 100."`
	KeepLast   *int           `placeholder:"N" help:"Forget slots that are not of the newest N runs."`
	List       bool           `help:"Show the slots on record at PATH, and how far the schedule has come."`
	Rewind     bool           `help:"Begin anew now, if a wrong clock put the mark into the future. Set the clocks right first."`
	KillAfter  *time.Duration `placeholder:"D" positive:"" help:"The time from TERM to KILL when CMD has to end. Default: a sixth of the session timeout."`
	OnRevoke   string         `enum:"term,ignore" default:"term" help:"When another client asks for the lock: end CMD (term), or go on (ignore)."`
	Path       conn.NodePath  `arg:"" predictor:"path" help:"The path of the schedule."`
	Schedule   string         `arg:"" optional:"" help:"When: five fields as in a crontab, in quotes, or @hourly, @daily, @every 10m and the like."`
	commandLine
	limits
	verbosely
}

// Help returns what does not fit into the list of options.
func (*CronVerb) Help() string {
	return `Start it on each host, with the same schedule and options. It goes on until a signal ends it. CMD gets COORD_PATH, COORD_NODE and COORD_TOKEN as with lock, COORD_INSTANT (such as 2026-11-23T16:05:00Z), and COORD_ATTEMPT (1 the first time) in its environment. A slot whose process died is run again by another one, unless with --at-most-once.

When clocks change, a schedule with * as its hour keeps its interval. Another runs each time of day once: a skipped one at the change, one that comes twice the first time.

Exit status: that of CMD, such as 0, if a signal came while CMD ran, and 128+n if it came during the wait; 126 or 127 if CMD cannot be run; 69 no session with the servers; 64 usage; 125 if something else kept CMD from being run. A CMD that fails does not end it.`
}

// Validate is called by kong.
func (v *CronVerb) Validate() error {
	switch {
	case (v.List || v.Rewind) && (v.Schedule != "" || v.Given() || v.List && v.Rewind):
		return errors.New("--list and --rewind go with a path alone")
	case v.List, v.Rewind:
		return nil
	case v.Schedule == "" || !v.Given():
		return fmt.Errorf(
			"no command to run, or no schedule: write both behind the path, as in %s cron /cron/report '*/5 * * * *' -- ./report.sh", term.Program)
	case v.AtMostOnce && v.Attempts != nil && *v.Attempts != 1:
		return errors.New("--at-most-once is --attempts=1: choose one")
	case v.Backoff != 0 && v.Attempts == nil:
		return errors.New("--backoff goes with --attempts")
	}
	if _, err := v.parse(time.Now()); err != nil {
		return err
	}
	return v.commandLine.Validate()
}

// starred is the mark of a field that is * in a schedule of robfig's.
const starred = 1 << 63

// parse reads the schedule and the time zone.
func (v *CronVerb) parse(now time.Time) (coordcron.Schedule, error) {
	if strings.Contains(v.Schedule, "TZ=") {
		return nil, fmt.Errorf("%q: --timezone says the time zone", v.Schedule)
	}
	loc, err := time.LoadLocation(v.Timezone)
	if err != nil || v.Timezone == "" || v.Timezone == "Local" {
		return nil, fmt.Errorf("--timezone %q: there is no such zone; write UTC, or a name such as Europe/Berlin", v.Timezone)
	}
	parsed, err := cron.ParseStandard(sundays(v.Schedule))
	if every, is := strings.CutPrefix(v.Schedule, "@every "); is && err == nil {
		err = wholeSeconds(every)
	}
	if err != nil {
		return nil, fmt.Errorf(
			"the schedule %q: %w; write five fields: minute, hour, day, month and weekday, as in '30 2 * * *'", v.Schedule, err)
	}
	s := coordcron.In(loc, parsed)
	if fields, ok := parsed.(*cron.SpecSchedule); ok && fields.Hour&starred == 0 {
		s = coordcron.WallClock(loc, parsed)
	}
	if s.Next(now).IsZero() {
		return nil, fmt.Errorf("the schedule %q names no time in the next five years", v.Schedule)
	}
	return s, nil
}

// wholeSeconds refuses an interval that a schedule would round, or take for a
// second.
func wholeSeconds(every string) error {
	if d, err := time.ParseDuration(every); err != nil || d < time.Second || d%time.Second != 0 {
		return fmt.Errorf("@every takes whole seconds, at least one")
	}
	return nil
}

// weekday is an item with 7 in the last field of a crontab: alone, or as the
// end of a range, with a step or without.
var weekday = regexp.MustCompile(`^(?:([0-7])-)?7(?:/([1-9]))?$`)

// sundays writes the weekday 7, which crontabs have for Sunday, as 0.
func sundays(schedule string) string {
	fields := strings.Fields(schedule)
	if len(fields) != 5 {
		return schedule
	}
	var days []string
	for item := range strings.SplitSeq(fields[4], ",") {
		found := weekday.FindStringSubmatch(item)
		if found == nil {
			days = append(days, item)
			continue
		}
		first, step := 7, 1
		if found[1] != "" {
			first, _ = strconv.Atoi(found[1])
		}
		if found[2] != "" {
			step, _ = strconv.Atoi(found[2])
		}
		for day := first; day <= 7; day += step {
			days = append(days, strconv.Itoa(day%7))
		}
	}
	fields[4] = strings.Join(days, ",")
	return strings.Join(fields, " ")
}

// description is what this process runs, for others at the same path. It has a
// digest of the command's arguments, which may hold secrets.
func (v *CronVerb) description() string {
	args := v.argv()
	digest := sha256.Sum256([]byte(strings.Join(args, "\x00")))
	return fmt.Sprintf("%s (%s): %.1000s, digest %x", v.Schedule, v.Timezone, args[0], digest[:4])
}

func (v *CronVerb) open(client *coord.Client, s coordcron.Schedule) (*coordcron.Cron, error) {
	missed := map[string]coordcron.Option{
		"skip": coordcron.CatchUp(1, lateSlot), "last": coordcron.CatchUp(1, 0), "all": coordcron.CatchUp(allMissed, 0),
	}
	opts := []coordcron.Option{missed[v.Missed], coordcron.Describe(v.description())}
	switch v.Overlap {
	case "skip":
		opts = append(opts, coordcron.Skip())
	case "beside":
		opts = append(opts, coordcron.MaxConcurrent(slotsTogether))
	}
	if v.Jitter != nil {
		opts = append(opts, coordcron.Jitter(*v.Jitter))
	}
	if v.AtMostOnce {
		opts = append(opts, coordcron.Attempts(1, 0))
	} else if v.Attempts != nil {
		opts = append(opts, coordcron.Attempts(*v.Attempts, v.Backoff))
	}
	if v.Keep != nil {
		opts = append(opts, coordcron.Keep(*v.Keep))
	}
	if v.KeepLast != nil {
		opts = append(opts, coordcron.KeepLast(*v.KeepLast))
	}
	return coordcron.New(client, string(v.Path), s, opts...)
}

// Run runs the command for one slot after the other, or lists the slots.
func (v *CronVerb) Run(s *term.Streams, c *conn.Connection) error {
	if v.List || v.Rewind {
		return v.onRecord(s, c)
	}
	schedule, err := v.parse(time.Now())
	if err != nil {
		return err
	}
	j := &job{
		late: "no slot", verbosely: v.verbosely,
		Paths: conn.NodePaths{v.Path}, commandLine: v.commandLine, limits: v.limits, KillAfter: v.KillAfter,
		IgnoreRevoke: v.OnRevoke == "ignore",
	}
	for connected := false; ; {
		t := &cronTask{verb: v, job: j, schedule: schedule}
		j.task = t
		err := j.run(s, c)
		status := &term.ExitError{Code: term.ExitOK}
		_ = errors.As(err, &status)
		connected = connected || t.connected
		switch {
		case j.signalled || j.left:
			return err
		case t.ended, t.slot != nil && status.Code == term.ExitLost:
		case connected && status.Code == term.ExitUnavailable:
		default:
			return err
		}
		s.AccountFor(status)
		switch {
		case status.Err != nil:
			s.Note("%v", status.Err) // else it was printed already
		case t.ended && status.Code != term.ExitOK:
			s.Note("the command of %s ended with status %d", t.name(), status.Code)
		}
	}
}

// cronTask is the task of a command that runs a slot.
type cronTask struct {
	verb      *CronVerb
	job       *job
	schedule  coordcron.Schedule
	slot      *coordcron.Slot // nil as long as there is none
	connected bool
	ended     bool // the command has
}

func (t *cronTask) acquire(ctx context.Context, _ *conn.Connection, client *coord.Client) (holding, error) {
	t.connected = true
	c, err := t.verb.open(client, t.schedule)
	if err != nil {
		return holding{}, err
	}
	if t.slot, err = c.Begin(ctx); err != nil {
		return holding{}, err
	}
	return alone(t.slot), nil
}

func (t *cronTask) look(ctx context.Context, client *coord.Client, _ look.Names) (look.Situation, error) {
	c, err := t.verb.open(client, t.schedule)
	if err != nil {
		return look.Situation{}, err
	}
	state, err := c.State(ctx)
	text := "the next slot is due at " + coordcron.Key(state.Next)
	if len(state.Open) > 0 {
		text = fmt.Sprintf("%s under way, the oldest %s", term.Plural(len(state.Open), "slot is", "slots are"),
			coordcron.Key(state.Open[0]))
	}
	return look.Situation{Text: text, Key: text, Fields: stateSummary(state)}, err
}

func (t *cronTask) name() string {
	if t.slot == nil {
		return "a slot"
	}
	return "the slot " + t.slot.Key
}

func (t *cronTask) prepare(cmd *exec.Cmd) error {
	cmd.Env = append(cmd.Env, "COORD_INSTANT="+t.slot.Key, "COORD_ATTEMPT="+strconv.Itoa(t.slot.Attempt))
	return nil
}

// giveBack leaves the slot to another process.
func (t *cronTask) giveBack() error {
	t.slot.Abandon()
	return nil
}

// complete puts the end on record. A command that failed because this process
// was told to end has not run its slot.
func (t *cronTask) complete(status int, asked bool, _ func() (context.Context, func())) (int, error) {
	t.ended = true
	var failure error
	switch {
	case t.job.signalled && status != term.ExitOK:
		return status, t.giveBack()
	case asked && status == term.ExitOK:
		status, failure = term.ExitLost, errors.New("another client asked for the slot before the command ended")
	case status != term.ExitOK:
		failure = fmt.Errorf("exit status %d", status)
	}
	ctx, cancel := context.WithTimeout(context.Background(), recordWithin)
	defer cancel()
	if _, err := t.slot.End(ctx, nil, failure); err != nil {
		return term.ExitLost, fmt.Errorf("the command of %s ended with status %d, but may be run again: %w",
			t.name(), status, err)
	}
	return status, nil
}

func (t *cronTask) summary(held float64, _ error) map[string]any {
	summary := alone(t.slot).summary()
	summary["slot"], summary["attempt"], summary["held"] = t.slot.Key, t.slot.Attempt, held
	return summary
}

// stateSummary is how far a schedule has come, in JSON.
func stateSummary(state coordcron.State) map[string]any {
	keys := []string{}
	for _, slot := range state.Open {
		keys = append(keys, coordcron.Key(slot))
	}
	summary := map[string]any{
		"through": coordcron.Key(state.Through), "open": keys, "left_out": state.LeftOut, "next": nil,
	}
	if !state.Next.IsZero() {
		summary["next"] = coordcron.Key(state.Next)
	}
	return summary
}

// never is the schedule of a client that only looks.
type never struct{}

func (never) Next(time.Time) time.Time { return time.Time{} }

// onRecord serves a command line that runs nothing.
func (v *CronVerb) onRecord(s *term.Streams, c *conn.Connection) error {
	return c.With(func(ctx context.Context, client *coord.Client) error {
		made, err := coordcron.New(client, string(v.Path), never{})
		if err != nil {
			return err
		}
		state, err := made.State(ctx)
		switch {
		case err != nil:
			return err
		case v.Rewind:
			return v.rewind(ctx, s, made, state)
		}
		if err := v.Path.NoteAbsent(ctx, s, client); err != nil {
			return err
		}
		return v.list(ctx, s, made, state)
	})
}

func (v *CronVerb) list(ctx context.Context, s *term.Streams, c *coordcron.Cron, state coordcron.State) error {
	summary, come := map[string]any{}, "no schedule\n"
	if !state.Through.IsZero() {
		summary = stateSummary(state)
		come = fmt.Sprintf("up to %s; %s left out\n", coordcron.Key(state.Through),
			term.Plural(state.LeftOut, "slot was", "slots were"))
		jobs, err := c.Jobs(ctx)
		if err != nil && !errors.Is(err, coord.ErrNoAuth) {
			return err
		}
		members := 0
		for _, job := range jobs {
			members += job.Clients
			come += fmt.Sprintf("%s %s\n", term.Plural(job.Clients, "process runs", "processes run"), term.Plain(job.Text))
		}
		summary["members"] = members
		if !state.Next.IsZero() {
			come += "the next slot is due at " + coordcron.Key(state.Next) + "\n"
		}
	}
	if unserved := look.Unserved(state); unserved != "" {
		come += unserved + "\n"
	}
	if state.Ahead > 0 {
		come += look.MarkAhead(state) + "\n"
	}
	summary["path"] = string(v.Path)
	return listJobs(ctx, s, c.Ledger(), "SLOT", "slots", summary, come)
}

func (v *CronVerb) rewind(ctx context.Context, s *term.Streams, c *coordcron.Cron, before coordcron.State) error {
	if before.Through.IsZero() {
		return &term.ExitError{Code: term.ExitFailed, Err: fmt.Errorf("there is no schedule at %s", v.Path)}
	}
	if err := c.Rewind(ctx); err != nil {
		return err
	}
	after, err := c.State(ctx)
	if err != nil {
		return err
	}
	summary, text := stateSummary(after), "the mark does not lie in the future; nothing was changed\n"
	if rewound := after.Through.Before(before.Through); rewound {
		text = fmt.Sprintf("put back from %s to %s\n", coordcron.Key(before.Through), coordcron.Key(after.Through))
	}
	summary["path"], summary["was"] = string(v.Path), coordcron.Key(before.Through)
	return s.Print(summary, "%s", text)
}
