//go:build !fuzz

package attend

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/internal/servers"
	"github.com/zkcoord/zkcoord/internal/virtual"
)

var errRefused = errors.New("refused")

// However often servers have refused before, the one that accepts has time to
// answer.
func TestAServerHasTimeToCloseASessionHoweverManyRefusedBefore(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		attempts, left := 0, make(chan time.Duration, 1)
		c := Closer{
			Config: servers.Config{
				Servers: []string{"one:2181"},
				Dial: func(context.Context, string, string) (net.Conn, error) {
					attempts++
					if attempts <= 70 {
						return nil, errRefused
					}
					near, far := net.Pipe()
					go func() {
						begun := time.Now()
						_, _ = io.Copy(io.Discard, far) // answers nothing
						select {
						case left <- time.Since(begun):
						default:
						}
					}()
					return near, nil
				},
				Lookup: func(context.Context, string) ([]string, error) { return []string{"10.0.0.1"}, nil },
			},
			Run: func(attempt func()) error {
				go attempt()
				return nil
			},
			Try: func(at func() error) error { return at() }, Failed: func(string, error) {},
		}
		require.Error(t, c.Close(t.Context(), Session{ID: 1, Timeout: 5 * time.Minute, Password: make([]byte, 16)}))
		require.Greater(t, attempts, 70)
		require.GreaterOrEqual(t, <-left, patience)
	})
}
