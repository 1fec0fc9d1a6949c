package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
)

// holding is what a command runs under: a hold, or several that end when the
// first of them does.
type holding struct {
	held
	holds   []coord.Held                    // in the order in which their paths were given
	release func(ctx context.Context) error // of all; nil where a task has another way to end them
	well    context.Context                 // ends, too, when the command is to end because its check fails; or nil
	stop    func()                          // ends the checks; or nil
}

// unwell is closed when the command's check has failed too often, for the cause
// of well, if it has one.
func (h holding) unwell() <-chan struct{} {
	if h.well == nil {
		return nil
	}
	return h.well.Done()
}

// held is what a hold and a group of holds have in common.
type held interface {
	Done() <-chan struct{}
	Err() error
	Deadline() time.Time
	Revoked() <-chan struct{}
}

func alone(h coord.Held) holding { return holding{held: h, holds: []coord.Held{h}} }

// ofHolding are the variables that say what a process runs under.
var ofHolding = regexp.MustCompile(`^COORD_(PATH|NODE|TOKEN|SINCE)(_[0-9]+)?=`)

// environment is this process's, with the variables of the command's holds
// instead of its own. Each of several holds has variables with its number.
func (h holding) environment(paths conn.NodePaths) []string {
	env := slices.DeleteFunc(os.Environ(), ofHolding.MatchString)
	for i, hold := range h.holds {
		number := ""
		if len(h.holds) > 1 {
			number = fmt.Sprintf("_%d", i+1)
		}
		env = append(env, "COORD_PATH"+number+"="+string(paths[i]), "COORD_NODE"+number+"="+hold.Node())
		if hold.Token() != 0 {
			env = append(env, "COORD_TOKEN"+number+"="+strconv.FormatInt(hold.Token(), 10))
		}
	}
	return append(env, conn.SinceVariable+"="+time.Now().UTC().Format(time.RFC3339Nano), heldWith(h.holds))
}

func (h holding) nodes() (nodes []string) {
	for _, hold := range h.holds {
		nodes = append(nodes, hold.Node())
	}
	return nodes
}

// summary has the nodes and tokens, for the JSON object at the end.
func (h holding) summary() map[string]any {
	var tokens []int64
	for _, hold := range h.holds {
		if hold.Token() != 0 {
			tokens = append(tokens, hold.Token())
		}
	}
	summary := map[string]any{}
	term.Put(summary, "node", h.nodes())
	term.Put(summary, "token", tokens)
	return summary
}

// heldWith is the variable for a command that runs under these holds, too.
func heldWith(holds []coord.Held) string {
	nodes := conn.HeldAround()
	for _, h := range holds {
		nodes = append(nodes, look.HeldName(h.Node(), h.Token()))
	}
	return conn.HeldVariable + "=" + strings.Join(nodes, " ")
}

// ownAt lists the nodes in a directory that stand for what this process runs
// under. That costs a request only where there are such nodes at all.
func ownAt(ctx context.Context, client *coord.Client, dir string) (own []string, err error) {
	if len(conn.HeldAround()) == 0 {
		return nil, nil
	}
	names, err := look.Children(ctx, client, dir)
	for _, name := range names {
		is, failed := isOwn(ctx, client, dir+"/"+name)
		if failed != nil {
			return nil, failed
		}
		if is {
			own = append(own, name)
		}
	}
	return own, err
}

// ownNode is ownAt for the lock that is one node.
func ownNode(ctx context.Context, client *coord.Client, node string) (own []string, err error) {
	is, err := isOwn(ctx, client, node)
	if is {
		own = []string{path.Base(node)}
	}
	return own, err
}

// isOwn reports whether this process runs under a node. That costs a request
// only where the node's name is among those of its holds, and has no GUID.
func isOwn(ctx context.Context, client *coord.Client, node string) (bool, error) {
	held, name := conn.HeldAround(), path.Base(node)
	if slices.Contains(held, name) {
		return true, nil
	}
	if !slices.ContainsFunc(held, func(h string) bool { return strings.HasPrefix(h, name+"@") }) {
		return false, nil
	}
	stat, there, err := client.Exists(ctx, node)
	return there && slices.Contains(held, look.HeldName(node, stat.Czxid)), err
}

// underItself refuses to wait for what this process runs under.
func underItself(path conn.NodePath, own string) error {
	return term.ExitWith(term.ExitOwnFault,
		"this process runs under %s already (%s), and would wait for itself for ever", path, own)
}

// unlessNested waits only if this process runs under fewer than room of the
// claims in dir. A try does not wait.
func unlessNested[H any](
	client *coord.Client, path conn.NodePath, dir string, room int, acquire acquirer[H],
) acquirer[H] {
	return unlessOwn(client, path, dir, ownAt, room, acquire)
}

func unlessOwn[H any](
	client *coord.Client, path conn.NodePath, at string,
	ownAt func(context.Context, *coord.Client, string) ([]string, error), room int, acquire acquirer[H],
) acquirer[H] {
	return func(ctx context.Context, try bool) (none H, err error) {
		own, err := ownAt(ctx, client, at)
		switch {
		case err != nil:
			return none, err
		case len(own) >= room && !try:
			return none, underItself(path, own[0])
		}
		return acquire(ctx, try)
	}
}

// sharedUnlessNested is unlessNested for a shared lock: inside of itself it is
// granted immediately, unless a plain lock waits in between, which waits for
// the outer one.
func sharedUnlessNested(client *coord.Client, path conn.NodePath, acquire acquirer[*coord.Hold]) acquirer[*coord.Hold] {
	return func(ctx context.Context, try bool) (*coord.Hold, error) {
		own, err := ownAt(ctx, client, string(path))
		if err != nil {
			return nil, err
		}
		h, err := acquire(ctx, try || len(own) > 0)
		if errors.Is(err, coord.ErrBusy) && !try {
			err = underItself(path, own[0])
		}
		return h, err
	}
}
