package election_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

const T, electionPath = coordtest.T, "/election"

// bubble is a test in virtual time, with what the tests of this package ask for
// there.
type bubble struct{ coordtest.Bubble }

func inBubble(t *testing.T, f func(b bubble)) {
	t.Helper()
	coordtest.InBubble(t, func(b coordtest.Bubble) { f(bubble{b}) })
}

func (b bubble) at(c *coord.Client) *election.Election {
	b.Helper()
	e, err := election.New(c, electionPath)
	require.NoError(b, err)
	return e
}

// The leader looks at the request when it hears of it, and that look is
// throttled: it comes after the proclamation, unless that waits for it.
func TestARequestToStepDownIsHeededBeforeAProclamationReplacesIt(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		term, err := b.at(c).Campaign(b.Context(), []byte("leader"))
		require.NoError(t, err)
		time.Sleep(time.Second) // until the own watch is set
		look := b.Server.Inject(zkembed.Match{
			Session: c.SessionID(), Ops: []zkembed.Op{zkembed.OpGetData}, Times: 1,
		}, zkembed.ReplyError(zkembed.CodeThrottledOp))
		require.NoError(t, inspect.Revoke(b.Context(), b.Open(), term.Node()))
		time.Sleep(T / 100) // half of the time until it looks again
		require.Equal(t, 1, look.Fired())
		require.NoError(t, term.Proclaim(b.Context(), []byte("news")))
		time.Sleep(T)
		select {
		case <-term.Revoked():
		default:
			require.Fail(t, "the request was overwritten")
		}
		require.NoError(t, term.Resign(b.Context()))
	})
}

func TestRunCampaignsAgainAfterALossWhateverItsFunctionReturns(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		ctx, cancel := context.WithTimeout(b.Context(), 10*T)
		defer cancel()
		terms := 0
		enough := errors.New("enough")
		err := b.at(c).Run(ctx, nil, func(ctx context.Context, term *election.Term) error {
			if terms++; terms == 2 {
				return enough
			}
			require.NoError(t, b.Server.ExpireSession(term.Session()))
			<-ctx.Done()
			return errors.New("lost")
		})
		require.Equal(t, enough, err)
		require.Equal(t, 2, terms)
	})
}

func TestRunEndsSoonAfterItsContextAlsoWhenTheServerHangs(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		var begun time.Time
		err := b.at(c).Run(ctx, nil, func(_ context.Context, term *election.Term) error {
			cut := b.Server.Partition(zkembed.Cut{Sessions: []int64{term.Session()}, NewConns: zkembed.HangDial})
			b.Cleanup(cut.Heal)
			begun = time.Now()
			cancel()
			return nil
		})
		require.ErrorIs(b, err, context.Canceled)
		require.LessOrEqual(b, time.Since(begun), 50*time.Millisecond)
	})
}

func TestATryToCampaignIsWonAtOnceOrNotAtAll(t *testing.T) {
	inBubble(t, func(b bubble) {
		first, second := b.at(b.Open()), b.at(b.Open())
		term, err := first.TryCampaign(b.Context(), []byte("first"))
		require.NoError(b, err)
		leader, err := second.Leader(b.Context())
		require.NoError(b, err)
		require.Equal(b, "first", string(leader.Data))
		require.NoError(b, term.Proclaim(b.Context(), nil))
		leader, err = second.Leader(b.Context())
		require.NoError(b, err)
		require.Contains(b, string(leader.Data), "election.test", "the identity")
		_, err = second.TryCampaign(b.Context(), nil)
		require.ErrorIs(b, err, coord.ErrBusy)
		_, err = second.TryCampaign(b.Context(), []byte("unlock"))
		require.ErrorIs(b, err, coord.ErrInvalid)
		require.NoError(b, term.Resign(b.Context()))
		term, err = second.TryCampaign(b.Context(), nil)
		require.NoError(b, err)
		require.NoError(b, term.Resign(b.Context()))
	})
}

func TestF56RunIsNotRefusedWhenItCampaignsAgain(t *testing.T) {
	inBubble(t, func(b bubble) {
		enough := errors.New("enough")
		led := make(chan *election.Term, 2)
		ended := make(chan error, 1)
		go func() {
			ended <- b.at(b.Open()).Run(b.Context(), nil, func(ctx context.Context, term *election.Term) error {
				if led <- term; cap(led) == len(led) {
					return enough
				}
				<-ctx.Done()
				return nil
			})
		}()
		time.Sleep(time.Second)
		remove := b.Foreign(electionPath)
		require.NoError(b, inspect.Break(b.Context(), b.Open(), (<-led).Node()))
		led <- nil
		time.Sleep(time.Minute)
		require.Empty(b, ended)
		remove()
		require.ErrorIs(b, <-ended, enough)
	})
}
