package session

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/internal/servers"
)

// A listing of thousands is not kept for one waiter.
func TestAListingIsKeptOnlyWhileSeveralShareIt(t *testing.T) {
	ls := &Listings{of: map[string]*lister{}}
	ls.Share("/line", Sharer{1, "a"})
	ls.Share("/line", Sharer{2, "b"})
	ls.of["/line"].newest = &Listing{}
	require.NotNil(t, ls.Newest("/line"))
	ls.Unshare("/line", 1)
	require.Nil(t, ls.Newest("/line"))
	ls.Unshare("/line", 2)
	require.Empty(t, ls.of)
}

// A connection that ends before the Keeper looks counts as a connection: the
// session has lost its servers, not lacked them from the start.
func TestAConnectionThatIsGoneBeforeItWasSeenIsNoFirstConnectionThatTakesLong(t *testing.T) {
	t.Parallel()
	var written strings.Builder
	log := slog.New(slog.NewTextHandler(&written, nil))
	opened := time.Now()
	lost := opened.Add(time.Millisecond)
	search := servers.New(t.Context(), servers.Config{Servers: []string{"zk:2181"}}, nil)
	s := &Session{cfg: &Config{Waiting: log}, log: log, search: search, opened: opened, downSince: lost}
	out := new(outage)
	require.Equal(t, warnAfter-warnFirst, out.attend(s, lost.Add(warnFirst)))
	require.Empty(t, written.String())
	out.attend(s, lost.Add(warnAfter))
	require.Contains(t, written.String(), "for=5s")

	s.opened, s.downSince = lost.Add(warnAfter+time.Second), lost.Add(warnAfter+2*time.Second) // back, and gone again
	written.Reset()
	require.Equal(t, warnAfter, out.attend(s, s.downSince))
	require.Empty(t, written.String(), "another outage")
}
