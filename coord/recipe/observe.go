package recipe

import (
	"context"
	"iter"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// Observe yields what look reads: now, and again whenever that is no longer the
// same. It yields the latest: what changes while the loop's body runs is
// skipped. It goes on over lost connections and sessions, and yields nothing
// while it is cut off. Only the last pair has an error: ctx has ended, the
// client was closed, or look failed; path is what that error names. With a
// client made by [coord.Client.Synced], the iterator never goes back in time.
//
// It costs what look reads, as for [coord.Client.Wait].
func Observe[T any](
	ctx context.Context, c *coord.Client, path string, look func(v *coord.View) (T, error), same func(a, b T) bool,
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var last T
		if look == nil || same == nil {
			yield(last, Failure(c, "observe", path, wire.Invalid("the function is nil")))
			return
		}
		begun := false
		err := c.Wait(ctx, func(v *coord.View) (stop bool, err error) {
			now, err := look(v)
			if err == nil && (!begun || !same(now, last)) {
				stop = !yield(now, nil)
			}
			last, begun = now, true
			return stop, err
		})
		if err != nil {
			var none T
			yield(none, Failure(c, "observe", path, err))
		}
	}
}
