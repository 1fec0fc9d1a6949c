//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/guard"
	"github.com/zkcoord/zkcoord/coord"
)

func TestASessionThatEndedBeforeTheDeadlineWasEndedByForce(t *testing.T) {
	before, after := &run{deadline: guard.Now().Add(time.Hour)}, &run{deadline: guard.Now()}
	require.False(t, before.overSince(coord.ErrSessionExpired))
	require.True(t, after.overSince(coord.ErrSessionExpired), "nobody confirmed it any more")
	require.True(t, before.overSince(coord.ErrWindowOver))
	require.False(t, after.overSince(coord.ErrNodeDeleted))
}
