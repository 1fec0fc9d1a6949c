package look

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// The round opens between the listing and the first read: the report must not
// show it without its last member.
func TestAListingThatIsOutOfDateMakesALookStartAgain(t *testing.T) {
	t.Parallel()
	w := zktest.NewEmbedded(t)
	ctx, path, client := t.Context(), w.Path("batch"), cmdtest.Open(t, w)
	barrier := cmdtest.Must(doublebarrier.New(client, path, 2))
	members := make(chan *doublebarrier.Member)
	enter := func() {
		member, _ := barrier.Enter(ctx)
		members <- member
	}
	go enter()
	var names []string
	zktest.Eventually(t, cmdtest.Soon, func() bool {
		names, _ = Children(ctx, client, path)
		return len(names) == 2
	}, "the barrier's record, and the first member")
	_, changed, err := lookAt(ctx, client, "", conn.NodePath(path), names)
	require.NoError(t, err)
	require.False(t, changed)

	go enter()
	require.NotNil(t, <-members)
	require.NotNil(t, <-members)
	_, changed, err = lookAt(ctx, client, "", conn.NodePath(path), names)
	require.NoError(t, err)
	require.True(t, changed)
	r, err := Examine(ctx, client, "", conn.NodePath(path))
	require.NoError(t, err)
	require.Equal(t, 2, r.Round.Inside)
}
