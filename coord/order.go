package coord

import (
	"context"
	"slices"
	"time"
)

// Order picks those out of the names of a directory's children that take part
// in the line, and sorts them by age. It costs no request.
func (l Line) Order(names []string, d Dialect) []Contender {
	line, _ := l.parse(names, d)
	return line
}

// Listed returns the names in the claim's directory as they were listed along
// with its create, or lists them now if that listing did not succeed: no
// request, or one. The list is no older than the create, so that whoever is
// missing in it came later or is gone. It fails with [ErrNodeDeleted] when the
// claim's own node is gone, or with [ErrReleased] when the claim was left.
func (cl *Claim) Listed(ctx context.Context) ([]string, error) {
	if cl.view == nil || !slices.Contains(cl.view.Names, cl.Name()) {
		names, err := cl.list(ctx)
		if err != nil {
			return nil, cl.client.Failure("list", cl.spec.Line.Dir, err)
		}
		if names == nil || !slices.Contains(names.Names, cl.Name()) {
			return nil, opError("list", cl.spec.Line.Dir, cl.missed())
		}
		cl.view, cl.seen = names, time.Now()
	}
	return slices.Clone(cl.view.Names), nil
}
