package session

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// The client library answers so what it has already sent, too.
func TestARequestThatIsGivenUpByClosingMayHaveBeenCarriedOut(t *testing.T) {
	s := &Session{}
	s.ending, s.end = context.WithCancelCause(context.Background())
	err := s.translate(zk.ErrClosing)
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, err, ErrConnection)
	require.Equal(t, ErrConnection, s.translate(zk.ErrConnectionClosed))
	s.end(ErrExpired)
	require.ErrorIs(t, s.translate(zk.ErrConnectionClosed), ErrExpired)
}
