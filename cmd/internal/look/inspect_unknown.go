package look

import (
	"fmt"
	"path"
	"slices"

	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
)

// UnknownKind is the kind, and the state, of contenders of unknown recipes.
const UnknownKind = string(coord.Unknown)

func isKnown(c coord.Contender) bool { return c.Dialect != coord.Unknown }

// unknown returns the children, which belong to sessions, as contenders of an
// unknown recipe if all have such names. Otherwise it returns nil, and all are
// a group's members: at a path without a lock, nothing else tells the two
// apart.
func (r *Report) unknown(children []inspect.Contender) []inspect.Contender {
	names := make([]string, len(children))
	for i, c := range children {
		names[i] = c.Name
	}
	line := inspect.Among(names)
	if len(line) < len(children) || slices.ContainsFunc(line, isKnown) {
		return nil
	}
	r.is(UnknownKind)
	for i := range children {
		at := slices.IndexFunc(line, func(c coord.Contender) bool { return c.Name == children[i].Name })
		children[i].Contender, children[i].Holds = line[at], false
	}
	return children
}

// Likely is the dialect that the line of an unknown recipe seems to have, or
// "".
func (r Report) Likely() coord.Dialect {
	var names []string
	for _, c := range r.Contenders {
		if c.Dialect == UnknownKind {
			names = append(names, path.Base(c.Node))
		}
	}
	return inspect.Likely(names...)
}

// LikelyText says which option makes a lock join the line.
func (r Report) LikelyText() string {
	if d := r.Likely(); d != "" {
		return fmt.Sprintf(", in whose line \"%s lock --dialect '%s'\" seems to stand", term.Program, d)
	}
	return ""
}

// Unknown counts the contenders of unknown recipes.
func (r Report) Unknown() (n int) {
	for _, c := range r.Contenders {
		if c.Dialect == UnknownKind {
			n++
		}
	}
	return n
}
