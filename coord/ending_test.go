package coord_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-multierror"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// The context ends when the release has begun, at a server that does not
// answer.
func TestAReleaseEndsWithAContextThatEndsDuringTheCall(t *testing.T) {
	for name, release := range map[string]func(ctx context.Context, b bubble, c *coord.Client, cutOff func()) error{
		"release": func(ctx context.Context, b bubble, c *coord.Client, cutOff func()) error {
			h := b.acquire(c)
			cutOff()
			return h.Release(ctx)
		},
		"release with the context of the hold itself": func(ctx context.Context, b bubble, c *coord.Client, cutOff func()) error {
			h := b.acquire(c)
			cutOff()
			return h.Release(h.Context(ctx))
		},
		"group": func(ctx context.Context, b bubble, c *coord.Client, cutOff func()) error {
			h := b.acquire(c)
			cutOff()
			return hold.NewSet(h).Release(ctx)
		},
		"do": func(ctx context.Context, _ bubble, c *coord.Client, cutOff func()) error {
			return hold.Do(ctx, acquiring(c), func(context.Context, *coord.Hold) error {
				cutOff()
				return nil
			})
		},
		"run": func(ctx context.Context, b bubble, c *coord.Client, cutOff func()) error {
			e, err := election.New(c, "/election")
			require.NoError(b, err)
			return e.Run(ctx, nil, func(context.Context, *election.Term) error {
				cutOff()
				return nil
			})
		},
	} {
		runInBubble(t, name, func(b bubble) {
			ctx, cancel := context.WithCancel(b.Context())
			var ended time.Time
			c := b.Open(coord.WithObserver(func(e event.Event) {
				if errors.Is(e.Err, coord.ErrReleased) {
					ended = time.Now()
					cancel()
				}
			}))
			err := release(ctx, b, c, func() { b.cutOff(c) })
			require.ErrorIs(b, err, context.Canceled)
			require.Zero(b, time.Since(ended))
		})
	}
}

func TestAReleaseInTheContextOfItsHoldEndsByItsDeadline(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, h := b.holder()
		b.cutOff(c)
		ctx, cancel := context.WithTimeout(h.Context(b.Context()), time.Second)
		defer cancel()
		begun := time.Now()
		err := h.Release(ctx)
		require.ErrorIs(t, err, coord.ErrUnconfirmed)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(begun))
	})
}

// cutOff has no server answer a client for the rest of the test.
func (b bubble) cutOff(c *coord.Client) {
	b.Cleanup(b.Server.Partition(zkembed.Cut{Sessions: []int64{c.Info().SessionID}}).Heal)
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
		runInBubble(t, name, func(b bubble) {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			c := b.Open()
			var begun time.Time
			acquire := func(ctx context.Context) (late, error) {
				h, err := recipe.Acquire(ctx, c, &mutex, first)
				return late{h, func() {
					cancel()
					time.Sleep(before) // more than Grace gives
					begun = time.Now()
				}}, err
			}
			err := hold.Do(ctx, acquire, func(context.Context, late) error {
				b.cutOff(c)
				if before > 0 {
					cancel()
				}
				return errors.New("done")
			})
			require.ErrorIs(b, err, coord.ErrUnconfirmed)
			require.Zero(b, time.Since(begun))
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
		"session just ended": {
			func(b bubble, c *coord.Client) { require.NoError(b, b.Server.ExpireSession(c.Info().SessionID)) }, 0, 0,
		},
		"handshake hung": {func(b bubble, _ *coord.Client) {
			b.Cleanup(b.Server.Partition(hang).Heal)
			b.Server.DropConns()
		}, time.Second, 0},
		"server hung": {
			func(b bubble, _ *coord.Client) { b.Cleanup(b.Server.Partition(hang).Heal) }, T / 10, time.Second,
		},
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
		require.Equal(t, short, c.Info().SessionTimeout)
		b.Cleanup(b.Server.Partition(zkembed.Cut{}).Heal)
		begun := time.Now()
		require.NoError(b, c.Close(context.Background()))
		require.LessOrEqual(b, time.Since(begun), short/6)
	})
}

// A server that comes back gives every session its whole time again.
func TestASessionThatWasGivenUpIsClosedWhereTheServersStillHaveIt(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, h := b.holder()
		b.Server.Stop()
		time.Sleep(2 * T)
		require.True(t, ended(h))
		resumed := time.Now()
		b.Server.Resume()
		next := b.acquire(c)
		t.Log(time.Since(resumed))
		require.NotEqual(t, h.Session(), next.Session())
		require.Less(t, time.Since(resumed), T/4, "the former node is not waited for")
	})
}

// The servers hear the client and keep its session, but it does not hear them:
// after T it gives the session up and makes another, while the former one's
// node is still there. A recipe that counts contenders must not count it twice.
func TestAContenderWhoseSessionWasGivenUpIsNotThereTwice(t *testing.T) {
	for name, joined := range map[string]bool{"its node known": true, "the reply to its create lost": false} {
		runInBubble(t, name, func(b bubble) {
			c, other := b.Open(), b.Open()
			h := b.acquire(other)
			waiting := make(<-chan outcome)
			if joined {
				waiting = b.acquireLater(c)
			}
			former := c.Info().SessionID
			deaf := b.Server.Partition(zkembed.Cut{Direction: zkembed.ToClient, Sessions: []int64{former}})
			if !joined {
				waiting = b.acquireLater(c)
			}
			for id := former; id == former || id == 0 || len(b.nodesOf(id)) == 0; id = c.Info().SessionID {
				time.Sleep(time.Millisecond)
			}
			require.Contains(b, b.sessions(), former, "the server has ended it before")
			require.Empty(b, b.nodesOf(former))
			deaf.Heal()
			require.NoError(b, h.Release(b.Context()))
			b.granted(waiting)
		})
	}
}

// sessions returns the sessions that the server keeps.
func (b bubble) sessions() (ids []int64) {
	for _, s := range b.Server.Sessions() {
		ids = append(ids, s.ID)
	}
	return ids
}

// The server reports the deletion of a watched node before it answers the
// closing that deletes it.
func TestAHoldThatEndsWithItsClientSaysSoAlsoWhenItsNodeIsWatched(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, h := b.holder()
		time.Sleep(time.Second) // until our watch is set
		b.Close(c)
		<-h.Done()
		require.ErrorIs(t, h.Err(), coord.ErrClosed)
		require.NotErrorIs(t, h.Err(), coord.ErrNodeDeleted)
	})
}

func TestATransactionUnderWayWhenItsClientIsClosedIsNotConfirmed(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(t, c.Create(b.Context(), "/written", nil))
		late := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}}, zkembed.DelayReply(time.Hour))
		failed := coordtest.Go(
			func() error { return coordtest.Err(c.Txn(b.Context(), coord.SetOp("/written", []byte("once"), -1))) })
		<-late.Struck()
		b.Close(c)
		err := <-failed
		require.ErrorIs(t, err, coord.ErrUnconfirmed)
		require.ErrorIs(t, err, coord.ErrClosed)
		require.Equal(t, "once", b.data("/written"), "for it was carried out")
	})
}

func TestATransactionThatWaitsToBeSentWhenItsClientIsClosedHasLostItsHold(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, h := b.holder()
		b.Server.Stop()
		synctest.Wait() // until the client has seen it
		failed := coordtest.Go(func() error { return coordtest.Err(h.Txn(b.Context(), coord.SetOp("/nothing", nil, -1))) })
		synctest.Wait()
		b.Close(c)
		err := <-failed
		require.ErrorIs(t, err, coord.ErrLost)
		require.ErrorIs(t, err, coord.ErrClosed)
		require.NotErrorIs(t, err, coord.ErrUnconfirmed)
		b.Server.Resume()
	})
}

func TestAHoldHasEndedWhenTheServerHearsThatItsClientCloses(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, h := b.holder()
		goodbye := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpCloseSession}},
			zkembed.DelayReply(time.Second/2))
		closed := coordtest.Go(func() error { return c.Close(context.Background()) })
		b.ends(h, coord.ErrClosed)
		require.Equal(t, 1, goodbye.Fired())
		require.Empty(t, closed, "still waiting for the answer")
		require.NoError(t, <-closed)
	})
}

func acquiring(c *coord.Client) func(context.Context) (*coord.Hold, error) {
	return acquirer(c, mutex, coord.First)
}

func TestDoReturnsTheErrorOfItsFunctionAsItIs(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, boom := b.Open(), errors.New("boom")
		err := hold.Do(b.Context(), acquiring(c), func(context.Context, *coord.Hold) error { return boom })
		require.Equal(b, boom, err)
		require.NoError(b, hold.Do(b.Context(), acquiring(c), func(_ context.Context, h *coord.Hold) error {
			return h.Release(b.Context())
		}), "what f itself released was not lost")
	})
}

func TestDoReportsALossBesideTheErrorOfItsFunction(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, boom := b.Open(), errors.New("boom")
		err := hold.Do(b.Context(), acquiring(c), func(ctx context.Context, h *coord.Hold) error {
			require.NoError(b, b.Server.ExpireSession(h.Session()))
			<-ctx.Done()
			return boom
		})
		var both *multierror.Error
		require.ErrorAs(b, err, &both)
		require.Len(b, both.Errors, 2)
		require.ErrorIs(b, err, boom)
		require.ErrorIs(b, err, coord.ErrLost)
		require.EqualError(b, err, "boom; "+both.Errors[1].Error(), "one line")
	})
}

func TestDoReleasesWhenItsFunctionPanics(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.PanicsWithValue(b, "boom", func() {
			_ = hold.Do(b.Context(), acquiring(c), func(context.Context, *coord.Hold) error { panic("boom") })
		})
		require.Zero(b, b.owned(c.Info().SessionID))
	})
}

// A server that does not answer any more takes until the session timeout to
// answer for.
func TestDoEndsWithItsContextAlsoWhenTheServerHangs(t *testing.T) {
	for name, left := range map[string]time.Duration{"ended before f returns": 0, "ends during the release": time.Second} {
		runInBubble(t, name, func(b bubble) {
			c := b.Open()
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			var begun time.Time
			err := hold.Do(ctx, acquiring(c), func(_ context.Context, h *coord.Hold) error {
				cut := b.Server.Partition(zkembed.Cut{Sessions: []int64{h.Session()}, NewConns: zkembed.HangDial})
				b.Cleanup(cut.Heal)
				begun = time.Now()
				if left == 0 {
					cancel()
				} else {
					time.AfterFunc(left, cancel)
				}
				return nil
			})
			require.ErrorIs(b, err, coord.ErrUnconfirmed)
			require.ErrorIs(b, err, context.Canceled)
			require.NotErrorIs(b, err, context.DeadlineExceeded)
			require.LessOrEqual(b, time.Since(begun), max(left, 50*time.Millisecond))
		})
	}
}
