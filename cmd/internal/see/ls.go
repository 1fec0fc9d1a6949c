package see

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
)

type LsVerb struct {
	Watch bool           `help:"List again and again, until q is typed."`
	Every *time.Duration `placeholder:"2s" positive:"" help:"With --watch: how often to look."`
	look.Surveyed
}

// Run lists the recipes at a path and below.
func (v *LsVerb) Run(s *term.Streams, c *conn.Connection) error {
	v.Dialect = c.LineDialect()
	book, seen := look.NewAddressBook(c), new(look.Sightings)
	show := func(ctx context.Context, client *coord.Client, s *term.Streams, to term.Page) error {
		found, err := v.Look(ctx, client)
		if err != nil {
			return err
		}
		if found.Absent && !v.Watch {
			return term.Absent(v.Path)
		}
		found.Date(seen)
		found.Hear(ctx, book)
		if s.JSON {
			return term.WriteJSON(s.Out, listingOf(found))
		}
		writeListing(to, found)
		return nil
	}
	switch {
	case v.Watch && v.Every == nil:
		return repeat(s, c, 2*time.Second, show)
	case v.Watch:
		return repeat(s, c, *v.Every, show)
	case v.Every != nil:
		return term.UsageError("--every goes with --watch")
	}
	return c.With(func(ctx context.Context, client *coord.Client) error { return show(ctx, client, s, s.Page()) })
}

// Listing is a survey with a line for each recipe instead of its contenders.
type Listing struct {
	Path    string   `json:"path"`
	Recipes []listed `json:"recipes"` // by path
	look.Extent
}

// listed is a recipe as ls shows it.
type listed struct {
	Path    string   `json:"path"`
	Kind    string   `json:"kind"`
	Dialect string   `json:"dialect"`
	Holders []string `json:"holders"` // their owners
	// There is the time in seconds since the first holder's node was made, its
	// wait included; null: nobody holds, or it is not known.
	There *float64 `json:"there_for"`
	look.Held
	Waiting int      `json:"waiting"`
	Items   *int     `json:"items,omitempty"` // of a queue
	Odd     []string `json:"odd"`
}

func listingOf(s *look.Survey) Listing {
	l := Listing{s.Path, make([]listed, 0, len(s.Recipes)), s.Extent}
	for _, r := range s.Recipes {
		one := listed{
			Path: r.Path, Kind: r.Kind, Dialect: r.Dialect, Holders: []string{}, Waiting: r.Waiting(), Odd: r.Oddities(),
		}
		for _, h := range r.Holders() {
			one.Holders = append(one.Holders, h.Owner)
			if len(one.Holders) == 1 {
				one.There, one.Held = h.Age, h.Held
			}
		}
		if r.Queue != nil {
			one.Items = &r.Queue.Items
		}
		l.Recipes = append(l.Recipes, one)
	}
	return l
}

func writeListing(to term.Page, s *look.Survey) {
	if len(s.Recipes) > 0 {
		t := term.Table{Heads: []string{"PATH", "KIND", "HOLDER", "HELD", "WAIT"}, About: "ODD"}
		for _, r := range s.Recipes {
			holder, since := r.HeldBy()
			t.Add(strings.Join(r.Oddities(), "; "), term.Plain(r.Path), r.Sort(), holder, since, strconv.Itoa(r.Waiting()))
		}
		_ = t.Write(to)
	}
	to.Say("", "%s at %s and below; %s", term.Plural(len(s.Recipes), "recipe", "recipes"), term.Plain(s.Path), s.Extent)
}

type HeldVerb struct {
	Node    string        `placeholder:"NODE" help:"The holder's node, by name or path."`
	Token   int64         `placeholder:"N" help:"The holder's fencing token."`
	Timeout time.Duration `default:"5s" positive:"" help:"Exit with 69 if the answer is not known after D."`
	Path    string        `arg:"" optional:"" predictor:"path" help:"The path of what is held. Inside CMD it may be left out: then held asks for all that CMD runs under."`
}

// Help returns what does not fit into the list of options.
func (*HeldVerb) Help() string {
	return `Inside the CMD of lock, elect, doublebarrier or queue receive, it asks the servers whether the holds that CMD runs under, as COORD_NODE names them, are still there. Elsewhere, PATH and --node or --token name the holder.

Exit status: 0 if all of it is held; 76 if not; 69 if no server answers, and that cannot be known; 64 usage.`
}

// Validate is called by kong.
func (v *HeldVerb) Validate() error {
	if v.Path == "" {
		return nil
	}
	return conn.NodePath(v.Path).Validate()
}

// probed is something that was granted, and whether it is still held.
type probed struct {
	Path    string   `json:"path"`
	Node    string   `json:"node"`
	Token   int64    `json:"token"`
	Held    bool     `json:"held"`
	Session string   `json:"session"`   // "" if it is not held
	There   *float64 `json:"there_for"` // seconds since the node was made; null if it is not held, or not known
	HeldFor *float64 `json:"held_for"`  // seconds since it was granted, if that is known
	why     string   // why it is not held
}

// Run reports whether something is still held.
func (v *HeldVerb) Run(s *term.Streams, c *conn.Connection) error {
	asked, err := v.asked()
	if err != nil {
		return err
	}
	d := c.LineDialect()
	ctx, cancel := conn.Within(context.Background(), v.Timeout)
	defer cancel()
	client, err := c.Open(ctx)
	if err != nil {
		return err
	}
	defer conn.HangUp(client)
	ask := askOutside
	if v.inside() {
		ask = askInside
	}
	all, text := true, ""
	for i := range asked {
		if err := ask(ctx, client.Synced(), d, &asked[i]); err != nil {
			return term.ExitWith(term.ExitUnavailable, "it cannot be known whether %s is held: %w", asked[i].Path, err)
		}
		all = all && asked[i].Held
		text += asked[i].String()
	}
	if err := s.Print(map[string]any{"held": all, "holds": asked}, "%s", text); err != nil || all {
		return err
	}
	return term.Silently(term.ExitLost)
}

func (h probed) String() string {
	if !h.Held {
		return fmt.Sprintf("not held: %s (%s)\n", term.Plain(h.Path), h.why)
	}
	return fmt.Sprintf("held: %s, %s, session %s\n", term.Plain(h.Path),
		look.Contender{Age: h.There, Held: look.Held{HeldFor: h.HeldFor}}.Since(), h.Session)
}

// inside reports whether the question is about what this process runs under.
func (v *HeldVerb) inside() bool { return v.Node == "" && v.Token == 0 }

// asked lists the holds to ask for.
func (v *HeldVerb) asked() (asked []probed, err error) {
	if !v.inside() {
		if v.Path == "" {
			return nil, term.UsageError("--node and --token go with a PATH")
		}
		return []probed{{Path: v.Path, Node: v.Node, Token: v.Token}}, nil
	}
	asked = runsUnder()
	if v.Path != "" {
		asked = slices.DeleteFunc(asked, func(h probed) bool { return h.Path != v.Path })
	}
	if len(asked) == 0 {
		return nil, term.UsageError(
			"this process does not run under %s, as far as COORD_NODE says; name the holder with --node or --token, and PATH",
			cmp.Or(v.Path, "anything"))
	}
	return asked, nil
}

// runsUnder are the holds that this process runs under, as the environment
// says: one without a number, or several with numbers from 1.
func runsUnder() (all []probed) {
	for i := range 1 << 16 {
		number := ""
		if i > 0 {
			number = "_" + strconv.Itoa(i)
		}
		node := os.Getenv("COORD_NODE" + number)
		switch {
		case node != "":
			token, _ := strconv.ParseInt(os.Getenv("COORD_TOKEN"+number), 10, 64) // 0: no token
			all = append(all, probed{Path: os.Getenv("COORD_PATH" + number), Node: node, Token: token})
		case i > 0:
			return all
		}
	}
	return all
}

// askInside looks for the node that h names: the hold lasts as long as that
// very node is there.
func askInside(ctx context.Context, client *coord.Client, _ coord.Dialect, h *probed) error {
	stat, there, err := client.Exists(ctx, h.Node)
	switch {
	case err != nil:
		return err
	case !there:
		h.why = "its node is gone"
	case stat.Owner == 0 || h.Token != 0 && stat.Czxid != h.Token:
		h.why = "its node is another's by now"
	default:
		granted, _ := time.Parse(time.RFC3339Nano, os.Getenv(conn.SinceVariable)) // zero: not known
		h.stand(look.SessionName(stat.Owner), term.SinceThen(stat.Created), term.SinceThen(granted))
	}
	return nil
}

func (h *probed) stand(session string, there, held *float64) {
	h.Held, h.Session, h.There, h.HeldFor = true, session, there, held
}

// askOutside looks for the holder among the contenders at the path.
func askOutside(ctx context.Context, client *coord.Client, d coord.Dialect, h *probed) error {
	r, err := look.Examine(ctx, client, d, conn.NodePath(h.Path))
	if err != nil {
		return err
	}
	found, err := named(ctx, client, r, h.Node)
	if err != nil {
		return err
	}
	h.why = "there is no such holder"
	for _, c := range found {
		if c.Age == nil { // its data may not be read, but its Stat may
			stat, there, err := client.Exists(ctx, c.Node)
			if err != nil {
				return err
			}
			if !there {
				continue
			}
			c.Token, c.Session, c.Age = stat.Czxid, look.SessionName(stat.Owner), term.SinceThen(stat.Created)
		}
		switch {
		case h.Token != 0 && c.Token != h.Token:
		case !c.Holds:
			h.why = "it waits"
		default:
			h.Node, h.Token = c.Node, c.Token
			h.stand(c.Session, c.Age, c.HeldFor)
		}
	}
	return nil
}
