package servers

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEachAddressOfANameIsAServer(t *testing.T) {
	dialled, reversed := map[string]int{}, false
	cfg := Config{
		Lookup: func(_ context.Context, host string) ([]string, error) {
			require.Equal(t, "zk", host)
			reversed = !reversed // as name servers do
			if reversed {
				return []string{"::1", "10.0.0.2", "10.0.0.1"}, nil
			}
			return []string{"10.0.0.1", "10.0.0.2", "::1"}, nil
		},
		Dial: func(_ context.Context, _, addr string) (net.Conn, error) {
			dialled[addr]++
			return nil, errors.New("refused")
		},
	}
	cfg.Servers = []string{"zk:2181", "other:2181"}
	s := New(t.Context(), cfg, nil)
	require.Equal(t, 2, s.count())
	for range 3 {
		_, err := s.connect(t.Context(), "tcp", "zk:2181")
		require.Error(t, err)
	}
	require.Equal(t, map[string]int{"10.0.0.1:2181": 1, "10.0.0.2:2181": 1, "[::1]:2181": 1}, dialled)
	require.Equal(t, 4, s.count(), "the other was not looked up")
}
