package coord_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/zkembed"
)

// endsDuring calls f, and ends its context when the release that f makes has
// begun, at a server that does not answer. It returns how long f took after
// that.
func endsDuring(b bubble, f func(ctx context.Context, c *coord.Client) error) time.Duration {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var ended time.Time
	c := b.Open(coord.WithObserver(func(e coord.Event) {
		if errors.Is(e.Err, coord.ErrReleased) {
			ended = time.Now()
			cancel()
		}
	}))
	cut := func() {
		b.Cleanup(b.Server.Partition(zkembed.Cut{Sessions: []int64{c.SessionID()}}).Heal)
	}
	err := f(context.WithValue(ctx, cutKey{}, cut), c)
	require.ErrorIs(b, err, context.Canceled)
	require.NotZero(b, ended)
	return time.Since(ended)
}

type cutKey struct{}

func cutOff(ctx context.Context) { ctx.Value(cutKey{}).(func())() }

func TestAReleaseEndsWithAContextThatEndsDuringTheCall(t *testing.T) {
	releases := map[string]func(ctx context.Context, c *coord.Client) error{
		"release": func(ctx context.Context, c *coord.Client) error {
			h, err := c.Acquire(ctx, mutex, first)
			if err != nil {
				return err
			}
			cutOff(ctx)
			return h.Release(ctx)
		},
		"group": func(ctx context.Context, c *coord.Client) error {
			h, err := c.Acquire(ctx, mutex, first)
			if err != nil {
				return err
			}
			cutOff(ctx)
			return coord.NewGroup(h).Release(ctx)
		},
		"leave": func(ctx context.Context, c *coord.Client) error {
			cl, err := c.Join(ctx, mutex)
			if err == nil {
				_, err = cl.Turn(ctx, first)
			}
			if err != nil {
				return err
			}
			cutOff(ctx)
			return cl.Leave(ctx)
		},
		"do": func(ctx context.Context, c *coord.Client) error {
			acquire := func(ctx context.Context) (*coord.Hold, error) { return c.Acquire(ctx, mutex, first) }
			return coord.Do(ctx, acquire, func(ctx context.Context, _ *coord.Hold) error {
				cutOff(ctx)
				return nil
			})
		},
		"run": func(ctx context.Context, c *coord.Client) error {
			e, err := election.New(c, "/election")
			if err != nil {
				return err
			}
			return e.Run(ctx, nil, func(ctx context.Context, _ *election.Term) error {
				cutOff(ctx)
				return nil
			})
		},
	}
	for name, f := range releases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) { require.Zero(b, endsDuring(b, f)) })
		})
	}
}

// late is what was acquired, whose release is asked for later than that.
type late struct {
	*coord.Hold
	meanwhile func()
}

func (l late) Release(ctx context.Context) error {
	l.meanwhile()
	return l.Hold.Release(ctx)
}

func TestDoEndsWithAContextThatEndsJustBeforeItReleases(t *testing.T) {
	for name, before := range map[string]time.Duration{"alive": 0, "ended": time.Second} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				ctx, cancel := context.WithCancel(b.Context())
				defer cancel()
				c := b.Open()
				var begun time.Time
				acquire := func(ctx context.Context) (late, error) {
					h, err := c.Acquire(ctx, mutex, first)
					return late{h, func() {
						cancel()
						time.Sleep(before) // more than Grace gives
						begun = time.Now()
					}}, err
				}
				err := coord.Do(ctx, acquire, func(context.Context, late) error {
					b.Cleanup(b.Server.Partition(zkembed.Cut{Sessions: []int64{c.SessionID()}}).Heal)
					if before > 0 {
						cancel()
					}
					return errors.New("done")
				})
				require.ErrorIs(b, err, coord.ErrUnconfirmed)
				require.Zero(b, time.Since(begun))
			})
		})
	}
}

// The client library waits for a second for an answer when it closes, whether
// or not there is a server to answer it.
func TestCloseWaitsForNoServerThatIsNotThere(t *testing.T) {
	hang := zkembed.Cut{NewConns: zkembed.AcceptDial}
	for name, state := range map[string]struct {
		make  func(b bubble, c *coord.Client)
		after time.Duration
		limit time.Duration
	}{
		"connected":           {func(bubble, *coord.Client) {}, 0, 0},
		"connection just cut": {func(b bubble, _ *coord.Client) { b.Server.Stop() }, 0, 0},
		"no server":           {func(b bubble, _ *coord.Client) { b.Server.Stop() }, T / 3, 0},
		"gave the session up": {func(b bubble, _ *coord.Client) { b.Server.Stop() }, 2 * T, 0},
		"session just ended":  {func(b bubble, c *coord.Client) { require.NoError(b, b.Server.ExpireSession(c.SessionID())) }, 0, 0},
		"handshake hung": {func(b bubble, _ *coord.Client) {
			b.Cleanup(b.Server.Partition(hang).Heal)
			b.Server.DropConns()
		}, time.Second, 0},
		"server hung":      {func(b bubble, _ *coord.Client) { b.Cleanup(b.Server.Partition(hang).Heal) }, T / 10, time.Second},
		"server long hung": {func(b bubble, _ *coord.Client) { b.Cleanup(b.Server.Partition(hang).Heal) }, 2 * T, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for range 40 { // as far as the scheduler decides
				inBubble(t, func(b bubble) {
					c := b.Open()
					b.acquire(c)
					state.make(b, c)
					time.Sleep(state.after)
					begun := time.Now()
					require.NoError(b, c.Close(context.Background()))
					require.LessOrEqual(b, time.Since(begun), state.limit)
					b.Server.Resume()
				})
			}
		})
	}
}

func TestCloseGivesAHungServerASixthOfAShortSession(t *testing.T) {
	inBubble(t, func(b bubble) {
		const short = 2 * tick
		c := b.Open(coord.WithSessionTimeout(short))
		require.Equal(t, short, c.SessionTimeout())
		b.Cleanup(b.Server.Partition(zkembed.Cut{}).Heal)
		begun := time.Now()
		require.NoError(b, c.Close(context.Background()))
		require.LessOrEqual(b, time.Since(begun), short/6)
	})
}
