package workload

import (
	"context"
	"errors"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// littering is a node that is written before litter is removed: a request that
// would make the litter, and is carried out late, is refused then.
const littering = "/littering"

// Litter makes a node that belongs to no recipe. It makes no parents: in
// another dialect the path may have another meaning.
func Litter(ctx context.Context, c *coord.Client, node string) error {
	_, stat, err := c.Get(ctx, littering)
	if errors.Is(err, coord.ErrNoNode) {
		err = ignoring(c.Create(ctx, littering, nil), coord.ErrNodeExists)
	}
	if err == nil {
		_, err = c.Txn(ctx, coord.CheckOp(littering, stat.Version), coord.CreateOp(node, nil))
	}
	return err
}

// RemoveLitter removes what [Litter] has made, or may have.
func RemoveLitter(ctx context.Context, c *coord.Client, node string) error {
	return recipe.Retry(ctx, c, func(ctx context.Context) error {
		if _, err := c.Set(ctx, littering, nil, -1); err != nil {
			return ignoring(err, coord.ErrNoNode) // nothing was made
		}
		return ignoring(c.Delete(ctx, node, -1), coord.ErrNoNode)
	})
}
