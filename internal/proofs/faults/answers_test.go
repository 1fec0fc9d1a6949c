package faults

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// F75: the answer of a server that serves nobody without an authentication.
func TestF75AServerThatDemandsAnAuthenticationSaysSo(t *testing.T) {
	t.Parallel()
	w := zktest.NewPrivate(t, zktest.Real, zktest.WithProperty("zookeeper.enforce.auth.enabled", "true"),
		zktest.WithProperty("zookeeper.enforce.auth.schemes", "digest"))
	c := coordtest.Open(t, w.ConnectString())
	ctx := coordtest.Limited(t)
	for range 3 {
		_, _, err := c.Exists(ctx, "/")
		require.ErrorIs(t, err, coord.ErrAuthFailed)
		require.ErrorContains(t, err, "enforce.auth.enabled")
	}
	known := coordtest.Open(t, w.ConnectString(), coord.WithAuth("digest", "somebody:secret"))
	require.NoError(t, coordtest.Write(ctx, known))
}

// F75: a session that is local to its server can have no ephemeral node. A
// transaction that makes one is answered as if the session had expired.
func TestF75ALocalSessionThatIsNotUpgradedIsNamed(t *testing.T) {
	onEnsemble(t, func(s scene) {
		for i, server := range s.w.Ensemble().Servers() {
			c := s.open(server.Addr())
			session := c.Info().SessionID
			require.NoError(s, c.Create(s.Context(), s.w.Path(fmt.Sprint("persistent-", i)), nil))
			q, err := queue.New(c, s.w.Path("queue"))
			require.NoError(s, err)
			for what, call := range map[string]func(context.Context) error{
				"lock": func(ctx context.Context) error { return coordtest.Err(s.mutex(c).Acquire(ctx)) },
				"name": func(ctx context.Context) error {
					return coordtest.Err(recipe.AcquireName(ctx, c, coord.NameSpec{Path: s.w.Path("name")}))
				},
				"receive": func(ctx context.Context) error { return coordtest.Err(q.Receive(ctx)) },
			} {
				ctx, cancel := context.WithTimeout(s.Context(), 5*T)
				begun := time.Now()
				err := call(ctx)
				cancel()
				s.Logf("%s at the %s after %v: %v", what, server.Mode(), time.Since(begun), err)
				require.ErrorIs(s, err, errors.ErrUnsupported, what)
				require.ErrorContains(s, err, "localSessionsUpgradingEnabled", what)
			}
			require.Equal(s, session, c.Info().SessionID, "the session is not over")
		}
	}, zktest.WithConfig("localSessionsEnabled", "true"), zktest.WithConfig("localSessionsUpgradingEnabled", "false"))
}
