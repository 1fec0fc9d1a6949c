package election_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestMain(m *testing.M) { zktest.Main(m) }

func at(t *testing.T, c *coord.Client, path string) *election.Election {
	t.Helper()
	e, err := election.New(c, path)
	require.NoError(t, err)
	return e
}

func leaderOf(t testing.TB, e *election.Election) election.Leader {
	t.Helper()
	leader, err := e.Leader(coordtest.Limited(t))
	require.NoError(t, err)
	return leader
}

func elected(t *testing.T, e *election.Election, data string) *election.Term {
	t.Helper()
	term, err := e.Campaign(coordtest.Limited(t), []byte(data))
	require.NoError(t, err)
	return term
}

// outcome is what came of a campaign in the background.
type outcome struct {
	term *election.Term
	err  error
}

// stand campaigns in the background and returns when the candidate is in line,
// as the nth.
func stand(t *testing.T, w *zktest.World, ctx context.Context, e *election.Election, path, data string, n int) <-chan outcome {
	t.Helper()
	done := coordtest.Go(func() outcome {
		term, err := e.Campaign(ctx, []byte(data))
		return outcome{term, err}
	})
	lined(t, w, path, n)
	return done
}

// lined waits until n candidates stand in line.
func lined(t *testing.T, w *zktest.World, path string, n int) {
	t.Helper()
	var names []string
	zktest.Eventually(t, coordtest.Soon, func() bool {
		names, _, _ = w.Admin().Children(path)
		names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "-") }) // a notice
		return len(names) == n
	}, "%d candidates in line", n)
}

func won(t *testing.T, done <-chan outcome) *election.Term {
	t.Helper()
	o := zktest.Receive(t, coordtest.Soon, done, "an election")
	require.NoError(t, o.err)
	return o.term
}

func TestTheFirstLeadsAndTheOthersFollowInTheirOrder(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path, names := w.Path("election"), []string{"a", "b", "c", "d"}
		watcher := at(t, coordtest.Open(t, w.ConnectString()), path)
		var waits []<-chan outcome
		for i, name := range names {
			waits = append(waits, stand(t, w, t.Context(), at(t, coordtest.Open(t, w.ConnectString()), path), path, name, i+1))
		}
		last := int64(0)
		for i, name := range names {
			term := won(t, waits[i])
			require.Greater(t, term.Token(), last)
			last = term.Token()
			for _, later := range waits[i+1:] {
				require.Empty(t, later, "two lead")
			}
			leader := leaderOf(t, watcher)
			require.Equal(t, name, string(leader.Data))
			require.Equal(t, term.Token(), leader.Token)
			require.Equal(t, term.Session(), leader.Session)
			require.Equal(t, term.Node(), leader.Node)
			line, err := watcher.Candidates(coordtest.Limited(t))
			require.NoError(t, err)
			require.Len(t, line, len(names)-i)
			require.Equal(t, term.Node(), line[0].Node)
			require.True(t, line[0].Holds)
			require.NoError(t, term.Resign(coordtest.Limited(t)))
			require.ErrorIs(t, term.Err(), coord.ErrReleased)
		}
		_, err := watcher.Leader(coordtest.Limited(t))
		require.ErrorIs(t, err, election.ErrNoLeader)
		require.ErrorContains(t, err, path)
	})
}

func TestTwoCandidatesOfOneClientDoNotBothLead(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		e := at(t, coordtest.Open(t, w.ConnectString()), w.Path("election"))
		first := elected(t, e, "first")
		second := stand(t, w, t.Context(), e, w.Path("election"), "second", 2)
		require.Empty(t, second)
		require.NoError(t, first.Resign(coordtest.Limited(t)))
		require.NoError(t, won(t, second).Resign(coordtest.Limited(t)))
	})
}

func TestACandidateThatGivesUpLeavesTheLine(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("election")
		e := at(t, coordtest.Open(t, w.ConnectString()), path)
		leader := elected(t, e, "leader")
		ctx, cancel := context.WithCancel(t.Context())
		second := stand(t, w, ctx, e, path, "second", 2)
		third := stand(t, w, t.Context(), at(t, coordtest.Open(t, w.ConnectString()), path), path, "third", 3)
		cancel()
		require.ErrorIs(t, zktest.Receive(t, coordtest.Soon, second, "the end of the campaign").err, context.Canceled)
		lined(t, w, path, 2)
		require.Empty(t, third)
		require.NoError(t, leader.Resign(coordtest.Limited(t)))
		require.NoError(t, won(t, third).Resign(coordtest.Limited(t)))
	})
}

func TestTheNodesAreThoseOfTheDialectsOwnElection(t *testing.T) {
	shapes := map[coord.Dialect]string{
		coord.Curator: `^_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-latch-(\d{10})?$`,
		coord.Kazoo:   `^[0-9a-f]{32}__lock__\d{10}$`,
	}
	for dialect, shape := range shapes {
		t.Run(string(dialect), func(t *testing.T) {
			w := zktest.New(t, zktest.Embedded)
			path := w.Path("election")
			e := at(t, coordtest.Open(t, w.ConnectString(), coord.WithDialect(dialect)), path)
			term := elected(t, e, "the data")
			second := stand(t, w, t.Context(), e, path, "second", 2)
			names, _, err := w.Admin().Children(path)
			require.NoError(t, err)
			for _, name := range names {
				require.Regexp(t, regexp.MustCompile(shape), name)
			}
			data, _, err := w.Admin().Get(term.Node())
			require.NoError(t, err)
			require.Equal(t, "the data", string(data))
			own := map[coord.Dialect]string{coord.Curator: term.Node()[:len(term.Node())-10], coord.Kazoo: term.Node()}[dialect]
			require.Equal(t, own, inspect.Notice(term.Node()))
			data, _, err = w.Admin().Get(own)
			require.NoError(t, err)
			require.Equal(t, "the data", string(data))
			leader := leaderOf(t, e)
			require.Equal(t, term.Node(), leader.Node)
			require.NoError(t, term.Resign(coordtest.Limited(t)))
			require.NoError(t, won(t, second).Resign(coordtest.Limited(t)))
		})
	}
}

func TestWithoutDataACandidateShowsItsIdentity(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	c := coordtest.Open(t, w.ConnectString(), coord.WithIdentity("somebody"))
	e := at(t, c, w.Path("election"))
	term, err := e.Campaign(coordtest.Limited(t), nil)
	require.NoError(t, err)
	leader := leaderOf(t, e)
	require.Equal(t, c.Identity(), string(leader.Data))
	require.NoError(t, term.Resign(coordtest.Limited(t)))
}

func TestALockInTheSameDirectoryIsRefused(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		c := coordtest.Open(t, w.ConnectString())
		lock, _, err := c.Stand(coordtest.Limited(t), coord.Spec{Line: coord.Line{Dir: w.Path("election")}, Kind: "lock"})
		require.NoError(t, err)
		require.ErrorIs(t, coordtest.Err(at(t, c, w.Path("election")).Campaign(coordtest.Limited(t), nil)), coord.ErrForeign)
		require.NoError(t, lock.Release(coordtest.Limited(t)))
	})
}

func TestBadInputIsRefused(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	c := coordtest.Open(t, w.ConnectString())
	for _, path := range []string{"", "/", "relative", "/ends/", "/a//b"} {
		require.ErrorIs(t, coordtest.Err(election.New(c, path)), coord.ErrInvalid, "%q", path)
	}
	require.ErrorIs(t, coordtest.Err(election.New(nil, "/election")), coord.ErrInvalid)
	e := at(t, c, w.Path("election"))
	for _, request := range []string{"unlock", "__REVOKE__"} {
		_, err := e.Campaign(coordtest.Limited(t), []byte(request))
		require.ErrorIs(t, err, coord.ErrInvalid)
		require.ErrorContains(t, err, request)
	}
	require.ErrorIs(t, coordtest.Err(e.Campaign(coordtest.Limited(t), make([]byte, 2<<20))), coord.ErrTooLarge)
	term := elected(t, e, "fine")
	require.ErrorIs(t, term.Proclaim(coordtest.Limited(t), []byte("unlock")), coord.ErrInvalid)
	require.ErrorIs(t, term.Proclaim(coordtest.Limited(t), make([]byte, 2<<20)), coord.ErrTooLarge)
	require.NoError(t, term.Proclaim(coordtest.Limited(t), []byte("still fine")))
	require.NoError(t, term.Resign(coordtest.Limited(t)))
}

func TestEveryCallEndsWithItsContextWhenNoServerAnswers(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		e := at(t, coordtest.Open(t, w.Proxy().Addr()), w.Path("election"))
		term := elected(t, e, "leader")
		calls := map[string]func(context.Context) error{
			"campaign":   func(ctx context.Context) error { _, err := e.Campaign(ctx, nil); return err },
			"leader":     func(ctx context.Context) error { _, err := e.Leader(ctx); return err },
			"candidates": func(ctx context.Context) error { _, err := e.Candidates(ctx); return err },
			"proclaim":   func(ctx context.Context) error { return term.Proclaim(ctx, []byte("new")) },
			"run":        func(ctx context.Context) error { return e.Run(ctx, nil, nil) },
			"observe": func(ctx context.Context) (last error) {
				for _, last = range e.Observe(ctx) {
				}
				return last
			},
		}
		for name, call := range calls {
			w.Proxy().Blackhole(1 | 2)
			require.ErrorIs(t, call(coordtest.Within(t, 50*time.Millisecond)), context.DeadlineExceeded, name)
			w.Proxy().Heal()
		}
		require.NoError(t, term.Resign(coordtest.Limited(t)))
		lined(t, w, w.Path("election"), 0)
	})
}

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
		ctx := b.Within(10 * T)
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
		leader := leaderOf(b, second)
		require.Equal(b, "first", string(leader.Data))
		require.NoError(b, term.Proclaim(b.Context(), nil))
		leader = leaderOf(b, second)
		require.Contains(b, string(leader.Data), "election.test", "the identity")
		require.ErrorIs(b, coordtest.Err(second.TryCampaign(b.Context(), nil)), coord.ErrBusy)
		require.ErrorIs(b, coordtest.Err(second.TryCampaign(b.Context(), []byte("unlock"))), coord.ErrInvalid)
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
