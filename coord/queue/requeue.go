package queue

import (
	"context"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue/internal/store"
)

// Requeue moves dead letters back into the queue, each by one transaction: with
// its data and its priority, as an item that was never delivered, behind the
// others of that priority. letters are the names of their nodes
// ([DeadLetter.Name]). Requeue stops at the first that it cannot move, and says
// how many it has moved: [coord.ErrBusy] when a consumer of the dead letters
// has it, [coord.ErrNoNode] when it is gone. Three requests for each, and two
// more; a letter that is acknowledged takes two more.
func (q *Queue) Requeue(ctx context.Context, letters ...string) (moved int, err error) {
	for _, letter := range letters {
		if err = q.requeue(ctx, letter); err != nil {
			break
		}
		moved++
	}
	if moved > 0 {
		q.sweep(ctx)
	}
	return moved, q.explain("requeue", err)
}

func (q *Queue) requeue(ctx context.Context, letter string) error {
	if err := q.room(ctx); err != nil {
		return err
	}
	dead := q.at.dead()
	err := dead.withFree(ctx, letter, func(e store.Entry) error {
		return q.at.moveInto(ctx, func() error {
			return q.remove(ctx, dead, e, coord.AppendOp(q.at.Entry(store.Prefix(store.Priority(e.Name))), e.Data))
		})
	})
	if err == nil {
		q.dispatcher.Added(store.Priority(letter))
	}
	return err
}
