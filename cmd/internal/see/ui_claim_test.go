//go:build linux || darwin || freebsd || openbsd

package see

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/ui"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// The claims on an item have the same name, whoever has it in hand.
func TestThePageLeavesAnItemThatHasChangedHands(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	client := cmdtest.Open(t, w)
	first, second := cmdtest.Open(t, w), cmdtest.Open(t, w)
	theirs, others := cmdtest.Must(queue.New(first, w.Path("q"))), cmdtest.Must(queue.New(second, w.Path("q")))
	for _, data := range []string{"one", "two"} {
		require.NoError(t, theirs.Put(t.Context(), []byte(data)))
	}
	items := []*queue.Item{cmdtest.Must(theirs.Receive(t.Context())), cmdtest.Must(theirs.Receive(t.Context()))}
	acted := []string{}
	act := (&UIVerb{Path: "/"}).act(client, func(ctx context.Context, _ *coord.Client, node string) error {
		acted = append(acted, node)
		for _, item := range items {
			if item.Hold().Node() != node {
				require.NoError(t, item.Nack(ctx, 0))
				items = append(items, cmdtest.Must(others.Receive(ctx)))
			}
		}
		return nil
	})
	err := act(t.Context(), ui.Target{Path: w.Path("q"), Session: look.SessionName(first.SessionID())})
	require.ErrorContains(t, err, "another session")
	require.Len(t, acted, 1)
}
