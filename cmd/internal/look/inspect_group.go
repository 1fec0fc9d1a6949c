package look

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/internal/layout"
)

const (
	// GroupKind is the kind of a path whose children are members of a group.
	GroupKind  = "group"
	memberKind = "present" // in a double barrier there are members, too
)

// mostMembers is how many children are read to find members, whose names do not
// tell them.
const mostMembers = 1000

// inGroup finds the members of a group at path: the children that belong to
// sessions. A name says whether a member is of the Kazoo dialect.
func (r *Report) inGroup(
	ctx context.Context, client *coord.Client, path conn.NodePath, names []string,
) ([]inspect.Contender, error) {
	var members []coord.Contender
	for _, name := range names[:min(mostMembers, len(names))] {
		c := coord.Contender{Name: name, Kind: memberKind, Dialect: coord.Curator}
		if isMember(name) {
			c.Dialect = coord.Kazoo
		}
		// A protected node in no line belongs to another recipe.
		if !strings.HasPrefix(name, "_c_") || len(LineOf([]string{name})) > 0 {
			members = append(members, c)
		}
	}
	line, err := inspect.Describe(ctx, client, string(path), members)
	line = slices.DeleteFunc(line, func(c inspect.Contender) bool { return isNoSession(c.Session) })
	if err != nil || len(line) == 0 {
		return nil, err
	}
	slices.SortFunc(line, func(a, b inspect.Contender) int { return cmp.Compare(a.Token, b.Token) })
	if unknown := r.unknown(line); unknown != nil {
		return unknown, nil
	}
	r.is(GroupKind)
	r.members = map[string]bool{}
	for i, c := range line {
		line[i].Holds, r.members[c.Name] = true, true
	}
	return line, nil
}

// isMember reports whether a node's name is a member's in the Kazoo dialect.
func isMember(name string) bool { return strings.HasSuffix(name, layout.MemberSuffix(coord.Kazoo)) }
