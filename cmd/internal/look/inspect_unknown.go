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

// unknown picks the contenders of unknown recipes out of the children that
// belong to sessions. Where others are among these, all are a group's members:
// a path without a lock shows nothing else to tell the two by.
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

// LikelyText says which option has a lock stand in the line.
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
