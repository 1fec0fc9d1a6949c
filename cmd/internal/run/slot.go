package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/slots"
	"github.com/zkcoord/zkcoord/internal/layout"
)

type SlotVerb struct {
	Durable   string         `placeholder:"NAME" help:"Keep the number for NAME, such as a host, after this process."`
	Cooldown  *time.Duration `placeholder:"D" help:"With --durable: nobody else gets the number before NAME has been away for D."`
	Try       bool           `help:"Do not wait: exit with 75 if no number is free."`
	List      bool           `help:"Show the numbers at PATH: who holds them, and whose they are."`
	Forget    string         `placeholder:"NAME" help:"Let others have the number kept for NAME."`
	Timeout   *time.Duration `placeholder:"D" positive:"" help:"Wait for D at most, connecting included, then exit with 124."`
	KillAfter *time.Duration `placeholder:"D" positive:"" help:"The time from TERM to KILL when CMD has to end. Default: a sixth of the session timeout."`
	OnRevoke  string         `enum:"term,ignore" default:"term" help:"When another client asks for the lock: end CMD (term), or go on (ignore)."`
	Path      conn.NodePath  `arg:"" predictor:"path" help:"The path of the slots."`
	N         string         `arg:"" optional:"" help:"How many there are: CMD gets one of the numbers from 0 to N-1."`
	commandLine
	limits
	verbosely
}

// Help returns what does not fit into the list of options.
func (*SlotVerb) Help() string {
	return `CMD runs while it has a number of its own, the lowest that is free. It gets COORD_SLOT, the number, and COORD_PATH, COORD_NODE and COORD_TOKEN as with lock, in its environment.

Exit status: that of CMD; 128+n if signal n ended it; 126 or 127 if it cannot be run; 76 if the number was lost, or asked for, before CMD ended; 75 none is free (--try), or the number is held (--forget); 124 no number in time; 69 no session with the servers; 64 usage; 125 if something else kept CMD from being run.`
}

// Validate is called by kong.
func (v *SlotVerb) Validate() error {
	asks := (v.List || v.Forget != "")
	switch {
	case asks && (v.N != "" || v.Given() || v.List && v.Forget != "" || v.Durable != ""):
		return errors.New("--list, and --forget NAME, go with a path alone")
	case asks:
		return nil
	case v.count() < 1:
		return fmt.Errorf(
			"how many slots are there? %q is no number of at least 1: write it behind the path, as in %s slot /ids/gpu 4 -- ./train.sh", v.N, term.Program)
	case v.Cooldown != nil && (v.Durable == "" || *v.Cooldown < 0):
		return errors.New("--cooldown is for --durable NAME, and must not be negative")
	}
	return v.commandLine.Validate()
}

// count is how many slots there are; 0 if that is not said.
func (v *SlotVerb) count() int {
	n, _ := strconv.Atoi(v.N)
	return n
}

// Run runs the command with a number, lists the numbers, or frees one.
func (v *SlotVerb) Run(s *term.Streams, c *conn.Connection) error {
	switch {
	case v.List:
		return v.list(s, c)
	case v.Forget != "":
		return c.With(func(ctx context.Context, client *coord.Client) error {
			all, err := slots.New(client, string(v.Path), 1)
			if err == nil {
				err = v.hasNumber(ctx, all)
			}
			if err == nil {
				err = all.Forget(ctx, v.Forget)
			}
			if errors.Is(err, coord.ErrBusy) {
				return &term.ExitError{Code: term.ExitBusy, Err: err}
			}
			if err != nil {
				return err
			}
			return s.Print(map[string]any{"path": string(v.Path), "owner": v.Forget}, "")
		})
	}
	at := &slotTask{lockTask: &lockTask{paths: conn.NodePaths{v.Path}, try: v.Try}, verb: v, streams: s}
	at.open = at.take
	return (&job{
		task: at, late: "no number", verbosely: v.verbosely,
		Paths: at.paths, commandLine: v.commandLine, limits: v.limits, Timeout: v.Timeout, KillAfter: v.KillAfter,
		IgnoreRevoke: v.OnRevoke == "ignore",
	}).run(s, c)
}

// hasNumber fails if no number is the owner's, who may be misspelt.
func (v *SlotVerb) hasNumber(ctx context.Context, all *slots.Slots) error {
	numbers, err := all.List(ctx)
	if err == nil && !slices.ContainsFunc(numbers, func(now slots.State) bool { return now.Owner == v.Forget }) {
		err = term.ExitWith(term.ExitFailed, "no number is kept for %q at %s", v.Forget, v.Path)
	}
	return err
}

// slotTask is the task of a command with a number.
type slotTask struct {
	*lockTask
	verb    *SlotVerb
	streams *term.Streams
	slot    *slots.Slot
}

func (t *slotTask) take(*lockTask) (acquirer[holding], error) {
	var opts []slots.Option
	if v := t.verb; v.Durable != "" {
		cooldown := time.Duration(0)
		if v.Cooldown != nil {
			cooldown = *v.Cooldown
		}
		opts = append(opts, slots.Durable(v.Durable, cooldown))
	}
	s, err := slots.New(t.client, string(t.verb.Path), t.verb.count(), opts...)
	return func(ctx context.Context, try bool) (holding, error) {
		acquire := s.Acquire
		if try {
			acquire = s.TryAcquire
		}
		slot, err := acquire(ctx)
		if err != nil {
			return holding{}, err
		}
		t.slot = slot
		h := alone(slot)
		h.release = slot.Release
		return h, nil
	}, err
}

func (t *slotTask) name() string { return fmt.Sprintf("slot %d of %s", t.slot.Number, t.verb.Path) }

func (t *slotTask) prepare(cmd *exec.Cmd) error {
	cmd.Env = append(cmd.Env, "COORD_SLOT="+strconv.Itoa(t.slot.Number))
	return nil
}

// complete gives the number back. A command that was asked to end may only have
// tidied up.
func (t *slotTask) complete(status int, asked bool, patience func() (context.Context, func())) (int, error) {
	status, err := t.lockTask.complete(status, asked, patience)
	if asked && status == term.ExitOK {
		return term.ExitLost, errors.Join(errors.New("another client asked for the number before the command ended"), err)
	}
	return status, err
}

func (t *slotTask) summary(held float64, err error) map[string]any {
	summary := t.lockTask.summary(held, err)
	summary["slot"] = t.slot.Number
	return summary
}

// look says who holds numbers, and the place in the line.
func (t *slotTask) look(ctx context.Context, client *coord.Client, own look.Names) (look.Situation, error) {
	nodes := layout.SlotNodes(t.verb.Path)
	names, err := look.Children(ctx, client, nodes.Held())
	if err != nil {
		return look.Situation{}, err
	}
	var holders []coord.Contender
	for _, name := range names {
		holders = append(holders, coord.Contender{Name: name, Kind: slots.Kind, Dialect: client.Info().Dialect})
	}
	first, err := (&look.Report{}).Read(ctx, client, nodes.Held(), holders)
	if err != nil {
		return look.Situation{}, err
	}
	for i, c := range first {
		first[i].Owner, _, _ = strings.Cut(c.Owner, "\n") // what distinguishes claims is no news
	}
	found, err := look.Children(ctx, client, nodes.Line().Dir)
	s := look.Situation{
		Text: look.HeldBy(first, len(holders)), Key: look.KeyOf(first),
		Fields: map[string]any{"holders": first, "holding": len(holders)},
	}
	s.StandIn(look.LineOf(found), 0, own)
	return s, err
}

// slotSummary is a number in JSON.
func slotSummary(now slots.State) map[string]any {
	summary := map[string]any{"slot": now.Number, "held": now.Holder != nil}
	if h := now.Holder; h != nil {
		summary["owner"], summary["node"], summary["token"], summary["session"] = h.Owner, h.Node, h.Token,
			look.SessionName(h.Session)
	}
	if now.Owner != "" {
		summary["for"], summary["cooldown"] = now.Owner, term.Seconds(now.Cooldown)
	}
	if !now.Away.IsZero() {
		summary["away"] = now.Away
	}
	return summary
}

// list shows the numbers.
func (v *SlotVerb) list(s *term.Streams, c *conn.Connection) error {
	return c.With(func(ctx context.Context, client *coord.Client) error {
		of, err := slots.New(client, string(v.Path), 1) // numbers of any N are listed
		if err != nil {
			return err
		}
		all, err := of.List(ctx)
		if err == nil {
			err = v.Path.NoteAbsent(ctx, s, client)
		}
		if err != nil {
			return err
		}
		stories := make([]map[string]any, len(all))
		t := term.Table{Heads: []string{"SLOT", "FOR", "AWAY", "COOLDOWN", "HELD", "TOKEN"}, About: "HOLDER"}
		for i, now := range all {
			stories[i] = slotSummary(now)
			holder, held, token, away, cooldown := "", "", "", "", ""
			if h := now.Holder; h != nil {
				holder, held, token = cmp.Or(h.Owner, "unknown"), term.Ago(h.Since), strconv.FormatInt(h.Token, 10)
			}
			if now.Owner != "" {
				cooldown = now.Cooldown.String()
			}
			if !now.Away.IsZero() {
				away = term.Ago(now.Away)
			}
			t.Add(term.Plain(holder), strconv.Itoa(now.Number), term.Plain(now.Owner), away, cooldown, held, token)
		}
		if s.JSON || len(all) == 0 {
			return s.Print(map[string]any{"path": string(v.Path), "slots": stories}, "no slots\n")
		}
		return t.Write(s.Page())
	})
}
