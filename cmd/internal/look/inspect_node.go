package look

import (
	"context"
	"path"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
)

// NodeKind is the kind of a node that belongs to a session and is of no known
// recipe: only its programs know whether it is, for example, a lock.
const NodeKind = "node"

// asNode finds out whether the node itself belongs to a session.
func (r *Report) asNode(ctx context.Context, client *coord.Client) error {
	line, err := inspect.Describe(ctx, client, path.Dir(r.Path),
		[]coord.Contender{{Name: path.Base(r.Path), Kind: NodeKind, Dialect: client.Info().Dialect}})
	if err != nil || len(line) == 0 || isNoSession(line[0].Session) {
		return err
	}
	r.is(NodeKind)
	line[0].Holds = true
	r.Contenders = append(r.Contenders, r.contender(1, line[0]))
	return nil
}
