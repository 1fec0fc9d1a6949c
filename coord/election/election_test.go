package election_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestMain(m *testing.M) { zktest.Main(m) }

func at(t testing.TB, c *coord.Client, path string, opts ...election.Option) *election.Election {
	t.Helper()
	e, err := election.New(c, path, opts...)
	require.NoError(t, err)
	return e
}

// scene is an election's path on some server.
type scene struct {
	*testing.T
	w    *zktest.World
	path string
}

// each runs a test on both servers.
func each(t *testing.T, f func(s scene)) {
	t.Helper()
	zktest.Each(t, func(t *testing.T, w *zktest.World) { f(scene{t, w, w.Path("election")}) })
}

func onEmbedded(t *testing.T) scene {
	t.Helper()
	w := zktest.NewEmbedded(t)
	return scene{t, w, w.Path("election")}
}

func (s scene) at(c *coord.Client, opts ...election.Option) *election.Election {
	s.Helper()
	return at(s, c, s.path, opts...)
}

// candidate returns the election for a client of its own, and behind for one
// behind the proxy.
func (s scene) candidate(opts ...election.Option) *election.Election {
	s.Helper()
	return s.at(coordtest.Open(s, s.w.ConnectString()), opts...)
}

func (s scene) behind() *election.Election {
	s.Helper()
	return s.at(coordtest.Open(s, s.w.Proxy().Addr()))
}

func elected(t testing.TB, e *election.Election, data string) *election.Term {
	t.Helper()
	term, err := e.Campaign(coordtest.Limited(t), []byte(data))
	require.NoError(t, err)
	return term
}

// outcome is what came of a campaign in the background.
type outcome = coordtest.Outcome[*election.Term]

// stand campaigns in the background and returns when the candidate is in line,
// as the nth.
func (s scene) stand(ctx context.Context, e *election.Election, data string, n int) <-chan outcome {
	s.Helper()
	done := coordtest.Begin(ctx,
		func(ctx context.Context) (*election.Term, error) { return e.Campaign(ctx, []byte(data)) })
	s.lined(n)
	return done
}

// lined waits until n candidates stand in line.
func (s scene) lined(n int) {
	s.Helper()
	zktest.Eventually(s, coordtest.Soon, func() bool {
		names, _, _ := s.w.Admin().Children(s.path)
		names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "-") }) // a notice
		return len(names) == n
	}, "%d candidates in line", n)
}

func TestTheFirstLeadsAndTheOthersFollowInTheirOrder(t *testing.T) {
	each(t, func(s scene) {
		names := []string{"a", "b", "c", "d"}
		watcher := s.candidate()
		var e *election.Election
		var waits []<-chan outcome
		for i, name := range names {
			if i%2 == 0 { // two candidates of each client
				e = s.candidate()
			}
			waits = append(waits, s.stand(s.Context(), e, name, i+1))
		}
		last := int64(0)
		for i, name := range names {
			term := coordtest.Had(s, waits[i])
			require.Greater(s, term.Token(), last)
			last = term.Token()
			for _, later := range waits[i+1:] {
				require.Empty(s, later, "two lead")
			}
			leader := coordtest.Call(s, watcher.Leader)
			require.Equal(s, election.Leader{
				Data: []byte(name), Node: term.Node(), Session: term.Session(), Since: leader.Since, Token: term.Token(),
			}, leader)
			line := coordtest.Call(s, watcher.Contenders)
			require.Len(s, line, len(names)-i)
			require.Equal(s, term.Node(), line[0].Node)
			require.True(s, line[0].Holds)
			require.NoError(s, term.Resign(coordtest.Limited(s)))
			require.ErrorIs(s, term.Err(), coord.ErrReleased)
		}
		_, err := watcher.Leader(coordtest.Limited(s))
		require.ErrorIs(s, err, election.ErrNoLeader)
		require.ErrorContains(s, err, s.path)
	})
}

func TestACandidateThatGivesUpLeavesTheLine(t *testing.T) {
	each(t, func(s scene) {
		e := s.candidate()
		leader := elected(s, e, "leader")
		ctx, cancel := context.WithCancel(s.Context())
		second := s.stand(ctx, e, "second", 2)
		third := s.stand(s.Context(), s.candidate(), "third", 3)
		fourth := run(ctx, e, "fourth")
		s.lined(4)
		cancel()
		require.ErrorIs(s, zktest.Receive(s, coordtest.Soon, second, "the end of the campaign").Err, context.Canceled)
		require.ErrorIs(s, zktest.Receive(s, coordtest.Soon, fourth.done, "the end of Run"), context.Canceled)
		s.lined(2)
		require.Empty(s, third)
		require.NoError(s, leader.Resign(coordtest.Limited(s)))
		require.NoError(s, coordtest.Had(s, third).Resign(coordtest.Limited(s)))
	})
}

func TestTheNodesAreThoseOfTheDialectsOwnElection(t *testing.T) {
	shapes := map[coord.Dialect]string{
		coord.Curator: `^_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-latch-(\d{10})?$`,
		coord.Kazoo:   `^[0-9a-f]{32}__lock__\d{10}$`,
	}
	for dialect, shape := range shapes {
		t.Run(string(dialect), func(t *testing.T) {
			s := onEmbedded(t)
			e := s.at(coordtest.Open(s, s.w.ConnectString(), coord.WithDialect(dialect)))
			term := elected(s, e, "the data")
			second := s.stand(s.Context(), e, "second", 2)
			for _, name := range coordtest.Children(s, s.w, s.path) {
				require.Regexp(s, shape, name)
			}
			data, _, err := s.w.Admin().Get(term.Node())
			require.NoError(s, err)
			require.Equal(s, "the data", string(data))
			own := map[coord.Dialect]string{coord.Curator: term.Node()[:len(term.Node())-10], coord.Kazoo: term.Node()}[dialect]
			require.Equal(s, own, inspect.Notice(term.Node()))
			data, _, err = s.w.Admin().Get(own)
			require.NoError(s, err)
			require.Equal(s, "the data", string(data))
			require.Equal(s, term.Node(), coordtest.Call(s, e.Leader).Node)
			require.NoError(s, term.Resign(coordtest.Limited(s)))
			require.NoError(s, coordtest.Had(s, second).Resign(coordtest.Limited(s)))
		})
	}
}

func TestALockInTheSameDirectoryIsRefused(t *testing.T) {
	each(t, func(s scene) {
		c := coordtest.Open(s, s.w.ConnectString())
		lock, _, err := recipe.Join(coordtest.Limited(s), c, &coord.Spec{Line: coord.Line{Dir: s.path}, Kind: "lock"})
		require.NoError(s, err)
		require.ErrorIs(s, coordtest.Err(s.at(c).Campaign(coordtest.Limited(s), nil)), coord.ErrForeign)
		require.NoError(s, lock.Release(coordtest.Limited(s)))
	})
}

func TestDataThatCannotBeRightAreRefused(t *testing.T) {
	s := onEmbedded(t)
	c := coordtest.Open(s, s.w.ConnectString())
	e := s.at(c)
	for _, request := range []string{"unlock", "__REVOKE__"} {
		_, err := e.Campaign(coordtest.Limited(s), []byte(request))
		require.ErrorIs(s, err, coord.ErrInvalid)
		require.ErrorContains(s, err, request)
	}
	require.ErrorIs(s, coordtest.Err(e.Campaign(coordtest.Limited(s), make([]byte, 2<<20))), coord.ErrTooLarge)
	term := elected(s, e, "fine")
	require.ErrorIs(s, term.Proclaim(coordtest.Limited(s), []byte("unlock")), coord.ErrInvalid)
	require.ErrorIs(s, term.Proclaim(coordtest.Limited(s), make([]byte, 2<<20)), coord.ErrTooLarge)
	require.NoError(s, term.Proclaim(coordtest.Limited(s), []byte("still fine")))
	require.NoError(s, term.Resign(coordtest.Limited(s)))
}

const T, electionPath = coordtest.T, "/election"

// The leader looks at the request when it hears of it, and that look is
// throttled: it comes after the proclamation, unless that waits for it.
func TestARequestToStepDownIsHeededBeforeAProclamationReplacesIt(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open()
		term := elected(b, at(b, c, electionPath), "leader")
		time.Sleep(time.Second) // until our watch is set
		look := b.Server.Inject(zkembed.Match{
			Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpGetData}, Times: 1,
		}, zkembed.ReplyError(zkembed.CodeThrottledOp))
		require.NoError(t, inspect.Revoke(b.Context(), b.Open(), term.Node()))
		time.Sleep(T / 100) // half of the time until it looks again
		require.Equal(t, 1, look.Fired())
		require.NoError(t, term.Proclaim(b.Context(), []byte("news")))
		zktest.Receive(b, T, term.Revoked(), "the request, unless it was overwritten")
		require.NoError(t, term.Resign(b.Context()))
	})
}

func TestRunEndsSoonAfterItsContextAlsoWhenTheServerHangs(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		var begun time.Time
		err := at(b, b.Open(), electionPath).Run(ctx, nil, func(_ context.Context, term *election.Term) error {
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
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		c := b.Open(coord.WithIdentity("somebody"))
		first, second := at(b, b.Open(), electionPath), at(b, c, electionPath)
		term, err := first.TryCampaign(b.Context(), []byte("first"))
		require.NoError(b, err)
		require.Equal(b, "first", string(coordtest.Call(b, second.Leader).Data))
		require.NoError(b, term.Proclaim(b.Context(), nil))
		require.Contains(b, string(coordtest.Call(b, second.Leader).Data), "election.test", "the identity")
		require.ErrorIs(b, coordtest.Err(second.TryCampaign(b.Context(), nil)), coord.ErrBusy)
		require.ErrorIs(b, coordtest.Err(second.TryCampaign(b.Context(), []byte("unlock"))), coord.ErrInvalid)
		require.NoError(b, term.Resign(b.Context()))
		term, err = second.TryCampaign(b.Context(), nil)
		require.NoError(b, err)
		require.Equal(b, c.Info().Identity, string(coordtest.Call(b, first.Leader).Data))
		require.NoError(b, term.Resign(b.Context()))
	})
}

func TestF56RunIsNotRefusedWhenItCampaignsAgain(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		enough := errors.New("enough")
		led := make(chan *election.Term, 2)
		ended := coordtest.Go(func() error {
			return at(b, b.Open(), electionPath).Run(b.Context(), nil, func(ctx context.Context, term *election.Term) error {
				led <- term
				if cap(led) == len(led) {
					return enough
				}
				<-ctx.Done()
				return nil
			})
		})
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
