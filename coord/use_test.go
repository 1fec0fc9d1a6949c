package coord_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
)

func TestAPanicInAFunctionOfUseIsItsCallers(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		stumble := errors.New("stumbled")
		require.PanicsWithValue(b, stumble, func() {
			_ = c.Use(b.Context(), func(*zk.Conn) error { panic(stumble) })
		})
		require.NoError(b, c.Use(b.Context(), func(conn *zk.Conn) error {
			_, _, err := conn.Exists("/")
			return err
		}))
	})
}

// As a failed requirement of a test does.
func TestAFunctionOfUseThatEndsItsGoroutineEndsItsCallers(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, ended := b.Open(), make(chan bool, 1)
		go func() {
			returned := false
			defer func() { ended <- returned }()
			_ = c.Use(b.Context(), func(*zk.Conn) error {
				(&testing.T{}).SkipNow()
				return nil
			})
			returned = true
		}()
		require.False(b, <-ended)
	})
}

func TestAFunctionOfUseWhoseCallerHasLeftGoesOnAlone(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, proceed, done := b.Open(), make(chan struct{}), make(chan error, 1)
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		err := c.Use(ctx, func(conn *zk.Conn) error {
			<-proceed
			_, _, err := conn.Exists("/")
			done <- err
			return err
		})
		require.ErrorIs(b, err, context.DeadlineExceeded)
		close(proceed)
		require.NoError(b, <-done)
	})
}

func TestCloseInsideOfUseIsAnErrorAtOnce(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, other := b.Open(), b.Open()
		require.NoError(b, c.Use(b.Context(), func(conn *zk.Conn) error {
			begun := time.Now()
			ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
			defer cancel()
			require.ErrorIs(b, c.Close(ctx), coord.ErrInvalid)
			require.Zero(b, time.Since(begun))
			require.NoError(b, other.Close(ctx), "another client may be closed")
			_, _, err := conn.Exists("/")
			return err
		}))
		require.NoError(b, c.Close(b.Context()))
	})
}

func TestACloseBesideUseFreesIt(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, freed := b.Open(), make(chan error, 1)
		b.Server.Stop()
		go func() {
			freed <- c.Use(b.Context(), func(conn *zk.Conn) error {
				_, _, err := conn.Exists("/")
				return err
			})
		}()
		synctest.Wait()
		require.NoError(b, c.Close(b.Context()))
		require.ErrorIs(b, <-freed, coord.ErrClosed)
		b.Server.Resume()
	})
}
