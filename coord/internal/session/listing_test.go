package session

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A listing of thousands is not kept for one waiter.
func TestAListingIsKeptOnlyWhileSeveralShareIt(t *testing.T) {
	s := &Session{listers: map[string]*lister{}}
	one, two := s.ShareListings("/line", Sharer{1, "a"}), s.ShareListings("/line", Sharer{2, "b"})
	s.listers["/line"].newest = &Listing{}
	require.NotNil(t, s.NewestListing("/line"))
	one()
	require.Nil(t, s.NewestListing("/line"))
	two()
	require.Empty(t, s.listers)
}
