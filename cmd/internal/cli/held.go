package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

type heldVerb struct {
	Node    string        `placeholder:"NODE" help:"Ask of the holder with this node, by its name or path."`
	Token   int64         `placeholder:"N" help:"Ask of the holder with this fencing token."`
	Timeout time.Duration `default:"5s" positive:"" help:"Answer within so long, connecting included; exit with 69 if it is not known by then."`
	Path    string        `arg:"" optional:"" predictor:"path" help:"The path of what is held. Inside of CMD it may be left out: all that CMD runs under is asked for then."`
}

// Help returns what does not fit beside the options.
func (*heldVerb) Help() string {
	return `Inside of the CMD of lock, elect, doublebarrier or queue receive, it asks whether the servers still count on what CMD runs under, which COORD_NODE tells. Elsewhere, PATH and --node or --token say of which holder.

Exit status: 0 if all of it is held; 76 if not; 69 if that cannot be known, since no server answers; 64 usage.`
}

// Validate is called by kong.
func (v *heldVerb) Validate() error {
	if v.Path == "" {
		return nil
	}
	return nodePath(v.Path).Validate()
}

// probed is something that was granted, and whether it is held still.
type probed struct {
	Path    string   `json:"path"`
	Node    string   `json:"node"`
	Token   int64    `json:"token"`
	Held    bool     `json:"held"`
	Session string   `json:"session"` // "" if it is not held
	Age     *float64 `json:"age"`     // of the node; null if it is not held, or not known
	why     string   // it is not held
}

// Run tells whether something is still held.
func (v *heldVerb) Run(s *streams, c *connection) error {
	asked, err := v.asked()
	if err != nil {
		return err
	}
	ctx, cancel := within(context.Background(), v.Timeout)
	defer cancel()
	client, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer hangUp(client)
	ask := askOutside
	if v.inside() {
		ask = askInside
	}
	all, text := true, ""
	for i := range asked {
		if err := ask(ctx, client.Fresh(), &asked[i]); err != nil {
			return exitWith(exitUnavailable, "it cannot be known whether %s is held: %w", asked[i].Path, err)
		}
		all = all && asked[i].Held
		text += asked[i].String()
	}
	if err := s.print(map[string]any{"held": all, "holds": asked}, "%s", text); err != nil || all {
		return err
	}
	return silently(exitLost)
}

func (h probed) String() string {
	if !h.Held {
		return fmt.Sprintf("not held: %s (%s)\n", plain(h.Path), h.why)
	}
	return fmt.Sprintf("held: %s, for %s, session %s\n", plain(h.Path), contender{Age: h.Age}.age(), h.Session)
}

// inside reports whether this process is to be asked about itself.
func (v *heldVerb) inside() bool { return v.Node == "" && v.Token == 0 }

// asked lists what is to be held.
func (v *heldVerb) asked() (asked []probed, err error) {
	if !v.inside() {
		if v.Path == "" {
			return nil, usageError("--node and --token go with a PATH")
		}
		return []probed{{Path: v.Path, Node: v.Node, Token: v.Token}}, nil
	}
	asked = runsUnder()
	if v.Path != "" {
		asked = slices.DeleteFunc(asked, func(h probed) bool { return h.Path != v.Path })
	}
	if len(asked) == 0 {
		return nil, usageError("this process does not run under %s, as far as COORD_NODE tells; say of which holder with --node or --token, and PATH",
			orAnything(v.Path))
	}
	return asked, nil
}

func orAnything(path string) string {
	if path == "" {
		return "anything"
	}
	return path
}

// runsUnder is what this process runs under, as the environment tells: without
// a number, or one after the other with numbers.
func runsUnder() (all []probed) {
	for i := range 1 << 16 {
		number := ""
		if i > 0 {
			number = "_" + strconv.Itoa(i)
		}
		node := os.Getenv("COORD_NODE" + number)
		switch {
		case node != "":
			token, _ := strconv.ParseInt(os.Getenv("COORD_TOKEN"+number), 10, 64) // 0: there is none
			all = append(all, probed{Path: os.Getenv("COORD_PATH" + number), Node: node, Token: token})
		case i > 0:
			return all
		}
	}
	return all
}

// askInside asks for a node that probed for something that was granted: it is
// held as long as the node is there.
func askInside(ctx context.Context, client *coord.Client, h *probed) error {
	stat, there, err := client.Exists(ctx, h.Node)
	switch {
	case err != nil:
		return err
	case !there:
		h.why = "its node is gone"
	case stat.Owner == 0 || h.Token != 0 && stat.Czxid != h.Token:
		h.why = "its node is another's by now"
	default:
		h.stand(sessionName(stat.Owner), sinceThen(stat.Created))
	}
	return nil
}

func (h *probed) stand(session string, since *float64) {
	h.Held, h.Session, h.Age = true, session, since
}

// askOutside looks for a holder among all at the path.
func askOutside(ctx context.Context, client *coord.Client, h *probed) error {
	r, err := inspect(ctx, client, nodePath(h.Path))
	if err != nil {
		return err
	}
	found := r.Contenders
	if r.Queue != nil {
		found = r.Queue.claimants(ctx, client, r, h.Node)
	}
	h.why = "there is no such holder"
	for _, c := range found {
		isIt := h.Node == "" || c.Node == h.Node || strings.HasSuffix(c.Node, "/"+h.Node) || r.Queue != nil
		switch {
		case !isIt || h.Token != 0 && c.Token != h.Token:
		case !c.Holds:
			h.why = "it waits"
		default:
			h.Node, h.Token = c.Node, c.Token
			h.stand(c.Session, c.Age)
		}
	}
	return nil
}
