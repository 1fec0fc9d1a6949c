package session

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A listing of thousands is not kept for one waiter.
func TestAListingIsKeptOnlyWhileSeveralShareIt(t *testing.T) {
	ls := &Listings{of: map[string]*lister{}}
	one, two := ls.Share("/line", Sharer{1, "a"}), ls.Share("/line", Sharer{2, "b"})
	ls.of["/line"].newest = &Listing{}
	require.NotNil(t, ls.Newest("/line"))
	one()
	require.Nil(t, ls.Newest("/line"))
	two()
	require.Empty(t, ls.of)
}
