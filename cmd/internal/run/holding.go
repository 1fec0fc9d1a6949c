package run

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
)

// holding is what a command runs under: a hold, or several that end when the
// first of them does.
type holding struct {
	held
	holds []*coord.Hold // in the order in which their paths were given
}

// held is what a hold and a group of them have.
type held interface {
	Done() <-chan struct{}
	Err() error
	Deadline() time.Time
	Revoked() <-chan struct{}
}

func alone(h *coord.Hold) holding { return holding{h, []*coord.Hold{h}} }

// ofHolding are the variables that tell what a process runs under.
var ofHolding = regexp.MustCompile(`^COORD_(PATH|NODE|TOKEN|SINCE)(_[0-9]+)?=`)

// environment is this process's, but for what it runs under itself, with what
// the command runs under. Each of several holds has variables with its number.
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

// story has the nodes and tokens, for the JSON object at the end.
func (h holding) story() map[string]any {
	var tokens []int64
	for _, hold := range h.holds {
		if hold.Token() != 0 {
			tokens = append(tokens, hold.Token())
		}
	}
	story := map[string]any{}
	term.Put(story, "node", h.nodes())
	term.Put(story, "token", tokens)
	return story
}
