package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/shards"
)

type ShardsVerb struct {
	Keys         []string       `placeholder:"KEY,…" help:"The keys. Without, those that there are."`
	Ranges       int            `placeholder:"N" help:"The keys are N ranges of a hash."`
	ListVersion  int64          `placeholder:"N" help:"The list's version, 0 by default: a newer list replaces an older one."`
	ID           string         `name:"id" placeholder:"NAME" help:"The member's name: back under it, a process gets its keys again."`
	Weight       int            `placeholder:"N" default:"1" help:"The member's share, relative to others'."`
	Zone         string         `placeholder:"NAME" help:"A key that must move prefers its zone."`
	Data         string         `placeholder:"TEXT" mayBeEmpty:"" help:"What others see of the member, such as its address."`
	Moves        int            `placeholder:"N" help:"Move at most N keys at a time."`
	Cooldown     time.Duration  `placeholder:"D" help:"Leave a key that has moved where it is for D."`
	DrainTimeout time.Duration  `placeholder:"D" positive:"" default:"30s" help:"From TERM to KILL when CMD's key is to move."`
	FailFast     bool           `help:"End with the first CMD that fails, instead of running it again."`
	Set          bool           `help:"Make --keys or --ranges the list of all members."`
	Plan         bool           `help:"Show which keys would move, and move none."`
	Without      []string       `placeholder:"ID" help:"With --plan: if this member were gone."`
	KillAfter    *time.Duration `placeholder:"D" positive:"" help:"The time from TERM to KILL when CMD has to end. Default: a sixth of the session timeout."`
	Path         conn.NodePath  `arg:"" predictor:"path" help:"The path of the shards."`
	commandLine
}

// Help returns what does not fit into the list of options.
func (*ShardsVerb) Help() string {
	return `CMD runs for each key that this member owns, and gets COORD_KEY, and COORD_PATH, COORD_NODE and COORD_TOKEN of the key's lock, in its environment; its standard input is empty. When the key is to move, CMD gets TERM. A CMD that fails is run again after 1 s, then after twice as long each time, up to a minute. Without CMD, the keys are shown: who is to own them, who does, and how they are.

TERM or INT gives all keys to other members, and ends when they have moved; a second one ends at once.

Exit status: 0 after TERM or INT; with --fail-fast that of a CMD that failed; 128+n if signal n ended it; 126 or 127 if CMD cannot be run; 78 if members that run have another list of keys, this member's ID is taken, or the plan has no room for it; 69 no session with the servers; 64 usage; 125 if something else went wrong.`
}

// exitConfiguration: the members disagree.
const exitConfiguration = 78

// Validate is called by kong.
func (v *ShardsVerb) Validate() error {
	switch {
	case len(v.Keys) > 0 && v.Ranges != 0:
		return errors.New("--keys and --ranges: choose one")
	case v.Plan && v.Given():
		return errors.New("--plan runs no command")
	case v.Set && (v.Plan || v.Given()):
		return errors.New("--set changes the list, and neither shows keys nor runs a command")
	case v.Set && len(v.Keys) == 0 && v.Ranges == 0:
		return errors.New("--set needs --keys or --ranges")
	case v.ListVersion != 0 && (v.Set || len(v.Keys) == 0 && v.Ranges == 0):
		return errors.New("--list-version goes with a command and its --keys or --ranges; --set counts by itself")
	case len(v.Without) > 0 && !v.Plan:
		return errors.New("--without goes with --plan")
	case v.Given():
		return v.commandLine.Validate()
	}
	return nil
}

// Run is a member, or shows the keys.
func (v *ShardsVerb) Run(s *term.Streams, c *conn.Connection) error {
	switch {
	case v.Given():
		return v.member(s, c)
	case v.Set:
		return c.With(func(ctx context.Context, client *coord.Client) error { return v.set(ctx, client) })
	case v.Plan:
		return c.With(func(ctx context.Context, client *coord.Client) error { return v.plan(ctx, s, client) })
	}
	return c.With(func(ctx context.Context, client *coord.Client) error { return v.show(ctx, s, client) })
}

func (v *ShardsVerb) open(client *coord.Client, more ...shards.Option) (*shards.Shards, error) {
	opts := []shards.Option{
		shards.Weight(v.Weight), shards.Zone(v.Zone), shards.Data([]byte(v.Data)), shards.Cooldown(v.Cooldown),
		shards.DrainTimeout(math.MaxInt64), // the member ends the command in time, and no key is released beside it
	}
	if len(v.Keys) > 0 {
		opts = append(opts, shards.Keys(v.Keys...))
	}
	if v.Ranges != 0 {
		opts = append(opts, shards.Ranges(v.Ranges))
	}
	if v.ID != "" {
		opts = append(opts, shards.ID(v.ID))
	}
	if v.Moves != 0 {
		opts = append(opts, shards.MovesAtATime(v.Moves))
	}
	if v.ListVersion != 0 {
		opts = append(opts, shards.ListVersion(v.ListVersion))
	}
	if v.FailFast {
		opts = append(opts, shards.FailFast())
	}
	return shards.New(client, string(v.Path), append(opts, more...)...)
}

// set makes the keys the list.
func (v *ShardsVerb) set(ctx context.Context, client *coord.Client) error {
	sh, err := shards.New(client, string(v.Path))
	if err != nil {
		return err
	}
	if v.Ranges != 0 {
		return sh.SetRanges(ctx, v.Ranges)
	}
	return sh.SetKeys(ctx, v.Keys...)
}

// show prints the keys, the desired and the effective owner of each.
func (v *ShardsVerb) show(ctx context.Context, s *term.Streams, client *coord.Client) error {
	sh, err := v.open(client)
	if err != nil {
		return err
	}
	plan, all, err := sh.Status(ctx)
	if errors.Is(err, shards.ErrNoOwner) {
		return v.noPlan(ctx, client)
	} else if err != nil {
		return err
	}
	stories := make([]map[string]any, len(all))
	t := term.Table{Heads: []string{"KEY", "DESIRED", "OWNER", "TOKEN", "SINCE", "STATE"}}
	for i, st := range all {
		summary := map[string]any{
			"key": st.Key, "desired": st.Desired.ID, "owner": st.Owner.Member.ID, "moving": st.Moving, "state": st.Life,
		}
		token, since := "", ""
		if st.Owner.Token != 0 {
			token, since = strconv.FormatInt(st.Owner.Token, 10), term.Ago(st.Owner.Since)
			summary["token"], summary["since"], summary["node"] = st.Owner.Token, st.Owner.Since, st.Owner.Node
		}
		if tr := st.Trouble; tr.Error != "" {
			summary["trouble"] = map[string]any{"member": tr.Member, "error": tr.Error, "count": tr.Count, "since": tr.Since}
		}
		stories[i] = summary
		t.Add("", term.Plain(st.Key), term.Plain(st.Desired.ID), term.Plain(st.Owner.Member.ID), token, since, stateOf(st))
	}
	if s.JSON {
		return s.Print(map[string]any{"path": string(v.Path), "generation": plan.Generation, "keys": stories}, "")
	}
	return t.Write(s.Page())
}

// stateOf says how a key is.
func stateOf(st shards.Status) string {
	text, tr := string(st.Life), st.Trouble
	if st.Moving {
		text += ", moving"
	}
	if tr.Count > 1 {
		text += fmt.Sprintf(", %d times", tr.Count)
	}
	if !tr.Again.IsZero() {
		text += fmt.Sprintf(", again in %v", max(0, time.Until(tr.Again)).Round(time.Second))
	}
	if tr.Error != "" {
		first, _, _ := strings.Cut(tr.Error, "\n")
		text += ": " + term.Plain(first)
	}
	return text
}

// noPlan is the error of a path without a plan.
func (v *ShardsVerb) noPlan(ctx context.Context, client *coord.Client) error {
	if err := v.Path.IsThere(ctx, client); err != nil {
		return err
	}
	return term.ExitWith(term.ExitFailed, "nobody shares keys at %s: there is no plan", v.Path)
}

// plan prints which keys would move.
func (v *ShardsVerb) plan(ctx context.Context, s *term.Streams, client *coord.Client) error {
	sh, err := v.open(client)
	if err != nil {
		return err
	}
	now, next, err := sh.Plan(ctx, v.Without...)
	if err != nil {
		return err
	}
	if len(now.Keys)+len(next.Keys) == 0 {
		return v.noPlan(ctx, client)
	}
	moves := []map[string]any{}
	t := term.Table{Heads: []string{"KEY", "FROM", "TO"}}
	for at, key := range next.Keys {
		from, _ := now.Owner(now.Place(key))
		to, _ := next.Owner(at)
		if from.ID != to.ID {
			moves = append(moves, map[string]any{"key": key, "from": from.ID, "to": to.ID})
			t.Add("", term.Plain(key), term.Plain(from.ID), term.Plain(to.ID))
		}
	}
	for _, key := range now.Keys {
		if next.Place(key) < 0 {
			from, _ := now.Owner(now.Place(key))
			moves = append(moves, map[string]any{"key": key, "from": from.ID, "to": ""})
			t.Add("", term.Plain(key), term.Plain(from.ID), "")
		}
	}
	if s.JSON || len(moves) == 0 {
		return s.Print(map[string]any{"path": string(v.Path), "moves": slices.Clip(moves)}, "no key would move\n")
	}
	return t.Write(s.Page())
}

// explain gives a member's failure its status.
func (v *ShardsVerb) explain(err error) error {
	var known *term.ExitError
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.Is(err, coord.ErrDisagree):
		return term.ExitWith(exitConfiguration, "%w (--list-version, or %s shards --set)", err, term.Program)
	case errors.Is(err, shards.ErrReplaced), errors.Is(err, coord.ErrTooLarge):
		return &term.ExitError{Code: exitConfiguration, Err: err}
	}
	return conn.OrUsage(fmt.Errorf("%s: %w", v.Path, err), term.ExitOwnFault)
}
