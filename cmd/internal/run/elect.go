package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/coord/inspect"
)

type ElectVerb struct {
	Data      *string        `placeholder:"TEXT" mayBeEmpty:"" help:"What --who and --observe show of this candidate. Default: its label, host and process."`
	Again     bool           `help:"After a loss, stand again instead of exiting with 76."`
	Priority  *int           `placeholder:"N" help:"Of the candidates with a priority, the highest leads next."`
	Health    string         `placeholder:"STRING" help:"A shell command that checks health: CMD ends when it fails three times in a row. Stand only when it succeeds."`
	Every     time.Duration  `name:"health-every" placeholder:"D" positive:"" default:"10s" help:"With --health: how often, and how long it may take."`
	Transfer  string         `placeholder:"CANDIDATE" help:"Have the leader hand over to CANDIDATE, by its data or node."`
	Who       bool           `help:"Show who leads; exit with 1 if nobody does."`
	Observe   bool           `help:"Show who leads, now and at each change."`
	Timeout   *time.Duration `placeholder:"D" positive:"" help:"Wait for D at most, connecting included, then exit with 124."`
	KillAfter *time.Duration `placeholder:"D" positive:"" help:"The time from TERM to KILL when CMD has to end. Default: a sixth of the session timeout."`
	OnRevoke  string         `enum:"term,ignore" default:"term" help:"When another client asks for the lock: end CMD (term), or go on (ignore)."`
	dialect   coord.Dialect  // of the line, or ""
	Path      conn.NodePath  `arg:"" predictor:"path" help:"The election's path."`
	commandLine
	limits
	verbosely
}

// Help returns what does not fit into the list of options.
func (*ElectVerb) Help() string {
	return `CMD runs while this process leads. Its environment, signals, and the exit status are those of lock: 76 if the leadership was lost before CMD ended, and CMD was stopped in time.`
}

// leaderNews is a leader in JSON.
type leaderNews struct {
	Path  string `json:"path"`
	Leads bool   `json:"leads"` // a candidate does
	term.NodeData
	Node    string `json:"node"`
	Session string `json:"session"`
	Token   int64  `json:"token"`
	Revoked bool   `json:"revoked"`
}

// tell prints a leader, or reports that there is none.
func (v *ElectVerb) tell(s *term.Streams, l election.Leader) error {
	news := leaderNews{
		Path: string(v.Path), Leads: !l.None(), NodeData: term.DataOf(l.Data), Node: l.Node, Token: l.Token,
		Revoked: l.Revoked,
	}
	line := "nobody leads"
	if news.Leads {
		news.Session = fmt.Sprintf("0x%x", uint64(l.Session))
		line = s.Shown(l.Data)
	}
	return s.Print(news, "%s\n", line)
}

// Validate is called by kong.
func (v *ElectVerb) Validate() error {
	asks := 0
	for _, set := range []bool{v.Who, v.Observe, v.Transfer != "", v.Given()} {
		if set {
			asks++
		}
	}
	if asks != 1 {
		return errors.New("say one of: a command to run while leading, after --; --who; --observe; --transfer")
	}
	if !v.Given() &&
		(v.Again || v.verbosely != (verbosely{}) || v.Label != "" || v.KillAfter != nil || v.limits != (limits{}) ||
			v.Data != nil || v.Priority != nil || v.Health != "") {
		return errors.New(
			"--data, --again, --kill-after, --max-hold, --stop-grace, --label, --priority, --health, --verbose and --quiet go with a command to run while leading")
	}
	if v.Timeout != nil && (v.Who || v.Observe) {
		return errors.New("--timeout goes with a command to run while leading, or with --transfer")
	}
	if v.Data != nil && v.Label != "" {
		return errors.New("--data takes the place of what --label says: choose one")
	}
	if v.Given() {
		return v.commandLine.Validate()
	}
	return nil
}

// Run runs the command as leader, or says who leads.
func (v *ElectVerb) Run(s *term.Streams, c *conn.Connection) error {
	v.dialect = c.LineDialect()
	switch {
	case v.Who:
		return v.who(s, c)
	case v.Observe:
		return v.observe(s, c)
	case v.Transfer != "":
		return v.transfer(s, c)
	}
	return v.lead(s, c)
}

// lead runs the command as lock does.
func (v *ElectVerb) lead(s *term.Streams, c *conn.Connection) error {
	checking := make(chan struct{}, 1)
	health, err := v.health(checking)
	if err != nil {
		return err
	}
	j := &job{
		task: &lockTask{paths: conn.NodePaths{v.Path}, open: v.candidate, health: health, dialect: v.dialect},
		late: "no turn", verbosely: v.verbosely,
		Paths: conn.NodePaths{v.Path}, commandLine: v.commandLine, limits: v.limits, Timeout: v.Timeout,
		KillAfter: v.KillAfter, IgnoreRevoke: v.OnRevoke == "ignore",
	}
	for led := false; ; {
		err := j.run(s, c)
		select {
		case checking <- struct{}{}: // no check is left
			<-checking
		case <-time.After(2 * checkDelay):
			s.Note("a process of %q cannot be stopped", v.Health)
		}
		var status *term.ExitError
		if !v.Again || j.left || j.ending || !errors.As(err, &status) {
			return err
		}
		led = led || j.lost
		if !j.lost && (!led || status.Code != term.ExitUnavailable) {
			return err
		}
		s.AccountFor(status)
		if status.Err != nil {
			s.Note("%v", status.Err) // else it was printed already
		}
		s.Note("stands for election at %s again", v.Path)
	}
}

// candidate stands for election. It does not try: others may stand, too.
func (v *ElectVerb) candidate(stands *lockTask) (acquirer[holding], error) {
	var opts []election.Option
	if v.Priority != nil {
		opts = append(opts, election.Priority(*v.Priority))
	}
	if v.dialect != "" {
		opts = append(opts, election.Dialect(v.dialect))
	}
	e, err := election.New(stands.client, string(v.Path), opts...)
	var data []byte
	if v.Data != nil {
		data = []byte(*v.Data)
	}
	return unlessNested(stands.client, v.Path, string(v.Path), 1, func(ctx context.Context, _ bool) (holding, error) {
		t, err := e.Campaign(ctx, data)
		if err != nil {
			return holding{}, err
		}
		h := alone(t)
		h.release = t.Resign
		return h, nil
	}), err
}

// checkDelay is how long a check that was killed may take to end.
const checkDelay = time.Second

// mostFailures is how many failures in a row of the check of --health end CMD.
const mostFailures = 3

// health is the check of --health, or nil. running has an element while a
// process of the check runs.
func (v *ElectVerb) health(running chan struct{}) (*hold.Health, error) {
	if v.Health == "" {
		return nil, nil
	}
	shell := commandLine{Command: v.Health}.argv()
	return hold.NewHealth(v.Every, mostFailures, func(ctx context.Context) error {
		running <- struct{}{}
		defer func() { <-running }()
		check := exec.CommandContext(ctx, shell[0], shell[1:]...)
		killTogether(check)
		check.WaitDelay = checkDelay
		if err := check.Run(); err != nil {
			return fmt.Errorf("%q: %w", v.Health, err)
		}
		return nil
	})
}

// transfer has the leader hand the lead over.
func (v *ElectVerb) transfer(s *term.Streams, c *conn.Connection) error {
	return (&conn.Waiting{Timeout: v.Timeout}).Wait(c, "no answer in time",
		func(ctx context.Context, client *coord.Client) error {
			e, err := election.New(client, string(v.Path), election.Dialect(v.dialect))
			if err != nil {
				return err
			}
			line, err := e.Contenders(ctx)
			if err != nil {
				return err
			}
			line = slices.DeleteFunc(line, func(c inspect.Contender) bool {
				return c.Node != v.Transfer && c.Name != v.Transfer && c.Owner != v.Transfer
			})
			switch len(line) {
			case 0:
				return term.ExitWith(term.ExitFailed, "%w: nobody who says %q stands at %s", election.ErrNoCandidate,
					v.Transfer, v.Path)
			case 1:
			default:
				return term.ExitWith(term.ExitFailed, "%d candidates at %s say %q: name the node", len(line), v.Path, v.Transfer)
			}
			if err = e.Transfer(ctx, line[0].Node); errors.Is(err, context.DeadlineExceeded) {
				return term.ExitWith(term.ExitTimeout, "the leader was asked, and leads on: %w", err)
			} else if err != nil {
				return err
			}
			leader, err := e.Leader(ctx)
			if err != nil {
				return fmt.Errorf("the lead was handed over, and who leads now is not known: %w", err)
			}
			return v.tell(s, leader)
		})
}

func (v *ElectVerb) who(s *term.Streams, c *conn.Connection) error {
	return c.With(func(ctx context.Context, client *coord.Client) error {
		e, err := election.New(client, string(v.Path), election.Dialect(v.dialect))
		if err != nil {
			return err
		}
		leader, err := e.Leader(ctx)
		if err != nil && !errors.Is(err, election.ErrNoLeader) {
			return err
		}
		err = v.tell(s, leader)
		if err == nil && leader.None() {
			return term.Silently(term.ExitFailed)
		}
		return err
	})
}

func (v *ElectVerb) observe(s *term.Streams, c *conn.Connection) error {
	return c.Lasting(nil, func(ctx context.Context, client *coord.Client) error {
		e, err := election.New(client, string(v.Path), election.Dialect(v.dialect))
		if err != nil {
			return conn.Failure(err)
		}
		for leader, err := range e.Observe(ctx) {
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil:
				return conn.Failure(err)
			}
			err = v.tell(s, leader)
			s.Told = false // of the end
			if errors.Is(err, syscall.EPIPE) {
				return nil // the reader is gone
			}
			if err != nil {
				return conn.Failure(err)
			}
		}
		return nil
	})
}

const (
	// standbyEvery is how often a service manager is told of a wait, unless its
	// watchdog wants it more often.
	standbyEvery = 20 * time.Second
	// standbyMore is how much longer the start of the service may take then.
	standbyMore = 60 * time.Second
)

// standBy notifies systemd, if this is a service of Type=notify, that it waits
// and is well: the start takes as long as the wait does. CMD says READY when it
// runs.
func standBy(waiting context.Context) {
	socket, err := net.Dial("unixgram", os.Getenv("NOTIFY_SOCKET"))
	if err != nil {
		return // there is no such manager
	}
	defer func() { _ = socket.Close() }()
	every := standbyEvery
	if limit, err := strconv.Atoi(os.Getenv("WATCHDOG_USEC")); err == nil && limit > 0 {
		every = min(every, time.Duration(limit)*time.Microsecond/2)
	}
	for again := time.NewTicker(every); ; {
		_, _ = fmt.Fprintf(socket, "EXTEND_TIMEOUT_USEC=%d\nWATCHDOG=1\n", standbyMore.Microseconds())
		select {
		case <-again.C:
		case <-waiting.Done():
			again.Stop()
			return
		}
	}
}
