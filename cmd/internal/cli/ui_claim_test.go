//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/ui"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// The claims on an item have the same name, whoever has it in hand.
func TestThePageLeavesAnItemThatHasChangedHands(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	client := coordtest.Open(t, w.ConnectString())
	first, second := coordtest.Open(t, w.ConnectString()), coordtest.Open(t, w.ConnectString())
	theirs, others := must(queue.New(first, w.Path("q"))), must(queue.New(second, w.Path("q")))
	for _, data := range []string{"one", "two"} {
		require.NoError(t, theirs.Put(t.Context(), []byte(data)))
	}
	items := []*queue.Item{must(theirs.Receive(t.Context())), must(theirs.Receive(t.Context()))}
	acted := []string{}
	act := (&uiVerb{Path: "/"}).act(client, func(ctx context.Context, node string) error {
		acted = append(acted, node)
		for _, item := range items {
			if item.Hold().Node() != node {
				require.NoError(t, item.Nack(ctx, 0))
				items = append(items, must(others.Receive(ctx)))
			}
		}
		return nil
	})
	err := act(t.Context(), ui.Target{Path: w.Path("q"), Session: sessionName(first.SessionID())})
	require.ErrorContains(t, err, "another session")
	require.Len(t, acted, 1)
}
