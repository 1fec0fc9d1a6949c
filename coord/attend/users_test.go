package attend

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/internal/attend"
	"github.com/zkcoord/zkcoord/internal/coordtest"
)

var someSession = attend.Session{
	Servers: []string{"127.0.0.1:1"}, ID: 7, Password: []byte("open sesame"), Timeout: time.Minute,
}

func TestASessionIsOneUsers(t *testing.T) {
	a := New(Options{})
	s := &someSession
	mine, mineToo, theirs := &peer{user: 1}, &peer{user: 1}, &peer{user: 2}
	require.NoError(t, a.attend(mine, s))
	require.NoError(t, a.attend(mineToo, s))
	require.ErrorContains(t, a.attend(theirs, s), "another user's")
	a.forget(theirs)
	a.forget(mine)
	require.True(t, a.attends(*s))
	a.forget(mineToo)
	require.False(t, a.attends(*s))
	require.NoError(t, a.attend(theirs, s))
}

// Whoever looks, when another connection's grace is over, sees it.
func TestASessionThatIsToldAgainIsAttendedAllTheTime(t *testing.T) {
	a := New(Options{})
	p, s := &peer{}, &someSession
	require.NoError(t, a.attend(p, s))
	told := coordtest.Go(func() error {
		for range 20_000 {
			if err := a.attend(p, s); err != nil {
				return err
			}
		}
		return nil
	})
	for {
		select {
		case err := <-told:
			require.NoError(t, err)
			return
		default:
			require.True(t, a.attends(*s))
		}
	}
}
