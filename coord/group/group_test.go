package group_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/group"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/internal/zktest/proxy"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// scene is a test on some server, in some dialect.
type scene struct{ coordtest.Scene }

func each(t *testing.T, f func(s scene)) {
	coordtest.EachDialect(t, func(s coordtest.Scene) { f(scene{s}) })
}

// told opens a client, and tells when a membership of it begins and is lost.
func (s scene) told(servers string) (c *coord.Client, granted, lost chan struct{}) {
	s.Helper()
	granted, lost = make(chan struct{}, 8), make(chan struct{}, 8)
	return s.OpenAt(servers, coord.WithObserver(func(e event.Event) {
		switch {
		case e.Kind == event.Granted:
			granted <- struct{}{}
		case e.Kind == event.Ended && errors.Is(e.Err, coord.ErrLost):
			lost <- struct{}{}
		}
	})), granted, lost
}

func (s scene) group() *group.Group {
	s.Helper()
	return of(s, s.Open(), s.W.Path("members"))
}

func of(t testing.TB, c *coord.Client, path string) *group.Group {
	t.Helper()
	g, err := group.New(c, path)
	require.NoError(t, err)
	return g
}

func join(t testing.TB, g *group.Group, id, data string) *group.Membership {
	t.Helper()
	m, err := g.Join(coordtest.Limited(t), id, []byte(data))
	require.NoError(t, err)
	return m
}

// texts are members as "ID=data".
func texts(members []group.Member) []string {
	all := []string{}
	for _, m := range members {
		all = append(all, m.ID+"="+string(m.Data))
	}
	return all
}

// observe follows a group in the background.
func observe(t testing.TB, g *group.Group) <-chan []group.Member {
	seen := make(chan []group.Member)
	ctx, done := t.Context(), make(chan struct{})
	go func() {
		defer close(done)
		for members, err := range g.Observe(ctx) {
			if err != nil {
				break
			}
			select {
			case seen <- members:
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(func() { <-done })
	return seen
}

// shows waits until those are there, and returns them.
func shows(t testing.TB, seen <-chan []group.Member, want ...string) []group.Member {
	t.Helper()
	for {
		members := zktest.Receive(t, coordtest.Soon, seen, "%q", want)
		if slices.Equal(texts(members), want) {
			return members
		}
	}
}

func TestAllSeeWhoIsThereAndWithWhatData(t *testing.T) {
	each(t, func(s scene) {
		seen := observe(s, s.group())
		shows(s, seen)
		one, other := s.group(), s.group()
		a := join(s, one, "a", "first")
		shows(s, seen, "a=first")
		b := join(s, other, "b", "second")
		shows(s, seen, "a=first", "b=second")
		require.NoError(s, b.Set(coordtest.Limited(s), []byte("third")))
		members := shows(s, seen, "a=first", "b=third")
		require.Equal(s, []int64{a.Token(), b.Token()}, []int64{members[0].Token, members[1].Token})
		require.WithinDuration(s, time.Now(), members[0].Since, time.Hour)
		require.NoError(s, b.Set(coordtest.Limited(s), []byte("fourth")), "also when its version is no longer the first")
		listed, err := one.Members(coordtest.Limited(s))
		require.NoError(s, err)
		require.Equal(s, shows(s, seen, "a=first", "b=fourth"), listed)
		require.NoError(s, a.Leave(coordtest.Limited(s)))
		shows(s, seen, "b=fourth")
		require.NoError(s, b.Leave(coordtest.Limited(s)))
		shows(s, seen)
		require.ErrorIs(s, b.Set(coordtest.Limited(s), nil), coord.ErrReleased)
	})
}

func TestAMemberWhoseSessionIsLostJoinsAgain(t *testing.T) {
	each(t, func(s scene) {
		c, granted, _ := s.told(s.W.ConnectString())
		seen := observe(s, s.group())
		ctx, leave := context.WithCancel(s.Context())
		defer leave()
		g := of(s, c, s.W.Path("members"))
		stayed := coordtest.Go(func() error { return g.Stay(ctx, "a", []byte("x")) })
		first := shows(s, seen, "a=x")
		zktest.Receive(s, coordtest.Soon, granted, "it is a member")
		s.W.ExpireSession(c.Info().SessionID)
		again := shows(s, seen, "a=x")
		for again[0].Token == first[0].Token {
			again = shows(s, seen, "a=x")
		}
		require.Greater(s, again[0].Token, first[0].Token)
		leave()
		require.ErrorIs(s, zktest.Receive(s, coordtest.Soon, stayed, "the member leaves"), context.Canceled)
		shows(s, seen)
	})
}

// The servers are away for longer than members trust them, and for less than
// their sessions last.
func TestF92AGroupLosesNobodyWhoseSessionLives(t *testing.T) {
	const n = 10
	zktest.EachPrivate(t, func(t *testing.T, w *zktest.World) {
		timeout := 10 * time.Second
		if w.Backend() == zktest.Real {
			timeout = 45 * time.Second // its start takes a while
		}
		w.SetTimeout(timeout)
		ids, lost, granted, over := []string{}, make(chan int64, n), make(chan int64, n), make(chan error, n)
		var beside []*coord.Hold
		stayed := make(chan error, n)
		for i := range n {
			id := string(rune('a' + i))
			c := coordtest.Open(t, w.ConnectString(), coord.WithSessionTimeout(timeout), coord.WithObserver(func(e event.Event) {
				switch {
				case e.Kind == event.SessionOver && !errors.Is(e.Err, coord.ErrClosed):
					over <- e.Err
				case !strings.HasPrefix(e.Path, w.Path("members")):
				case e.Kind == event.Granted:
					granted <- e.Token
				case e.Kind == event.Ended && errors.Is(e.Err, coord.ErrLost):
					lost <- e.Token
				}
			}))
			h, err := recipe.AcquireName(t.Context(), c, coord.NameSpec{Path: w.Path("beside/" + id)}) // shows the window
			require.NoError(t, err)
			beside, ids = append(beside, h), append(ids, id+"=x")
			staying, leave := context.WithCancel(context.Background())
			go func() { stayed <- of(t, c, w.Path("members")).Stay(staying, id, []byte("x")) }()
			t.Cleanup(func() {
				leave()
				require.ErrorIs(t, <-stayed, context.Canceled)
			})
		}
		members := of(t, coordtest.Open(t, w.ConnectString(), coord.WithSessionTimeout(timeout)), w.Path("members"))
		seen := observe(t, members)
		before := shows(t, seen, ids...)
		for range n {
			zktest.Receive(t, coordtest.Soon, granted, "all are members")
		}

		for _, h := range beside { // a session that is new is trusted for all of its timeout
			zktest.Eventually(t, 2*timeout, func() bool { return time.Until(h.Deadline()) < timeout*6/10 },
				"the window is as long as usual")
		}
		w.Crash()
		for range n {
			zktest.Receive(t, timeout, lost, "the members know of the loss")
		}
		w.Recover()
		for range n {
			zktest.Receive(t, coordtest.Soon, granted, "all are members again")
		}
		select {
		case err := <-over:
			require.NoError(t, err, "the sessions live")
		default:
		}
		m := join(t, of(t, coordtest.Open(t, w.ConnectString()), w.Path("members")), "z",
			"x") // what was to be seen before it is seen
		for {
			now := zktest.Receive(t, coordtest.Soon, seen, "the newcomer")
			require.GreaterOrEqual(t, len(now), n, "%v", texts(now))
			if len(now) > n {
				require.Equal(t, before, now[:n], "with the tokens that they had")
				break
			}
		}
		require.NoError(t, m.Leave(coordtest.Limited(t)))
	})
}

// It is cut off until it has lost its place, and cannot join again.
func TestAMemberThatIsToJoinAgainStopsWithItsContext(t *testing.T) {
	each(t, func(s scene) {
		c, granted, lost := s.told(s.W.Proxy().Addr())
		seen := observe(s, s.group())
		ctx, leave := context.WithCancel(s.Context())
		defer leave()
		stayed := coordtest.Go(func() error { return of(s, c, s.W.Path("members")).Stay(ctx, "a", []byte("x")) })
		shows(s, seen, "a=x")
		zktest.Receive(s, coordtest.Soon, granted, "it is a member")
		s.W.Proxy().Blackhole(proxy.Both)
		zktest.Receive(s, coordtest.Soon, lost, "the member knows of the loss")
		require.Empty(s, stayed)
		leave()
		require.ErrorIs(s, zktest.Receive(s, coordtest.Soon, stayed, "the member stops"), context.Canceled)
		s.W.Proxy().Heal()
		shows(s, seen)
	})
}

func TestOneAtATimeHasAnID(t *testing.T) {
	each(t, func(s scene) {
		first, other := join(s, s.group(), "a", "x"), s.group()
		_, err := other.Join(coordtest.Within(s, 500*time.Millisecond), "a", []byte("y"))
		require.ErrorIs(s, err, context.DeadlineExceeded)
		require.ErrorContains(s, err, "another has the ID")
		var second *group.Membership
		joined := coordtest.Go(func() (err error) {
			second, err = other.Join(coordtest.Limited(s), "a", []byte("y"))
			return err
		})
		require.NoError(s, join(s, other, "b", "z").Leave(coordtest.Limited(s)))
		require.Empty(s, joined, "two have the ID")
		require.NoError(s, first.Leave(coordtest.Limited(s)))
		require.NoError(s, zktest.Receive(s, coordtest.Soon, joined, "the ID is free"))
		require.Greater(s, second.Token(), first.Token())
		require.NoError(s, second.Leave(coordtest.Limited(s)))
	})
}

// A request to leave stands before the data, and hides them from nobody.
func TestAMemberThatIsAskedToLeaveKeepsItsData(t *testing.T) {
	each(t, func(s scene) {
		c := s.Open()
		m, err := of(s, c, s.W.Path("members")).Join(coordtest.Limited(s), "a", nil)
		require.NoError(s, err)
		require.NoError(s, inspect.Revoke(coordtest.Limited(s), c, m.Node()))
		zktest.Receive(s, coordtest.Soon, m.Revoked(), "the request")
		require.Equal(s, []string{"a=" + c.Info().Identity}, texts(shows(s, observe(s, s.group()), "a="+c.Info().Identity)))
		require.NoError(s, m.Leave(coordtest.Limited(s)))
	})
}

// In the Kazoo dialect other children are no members.
func TestOnlyMembersAreListed(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		s := scene{coordtest.Scene{T: t, W: w, Dialect: coord.Kazoo}}
		m := join(s, s.group(), "a", "x")
		c := s.Open()
		require.NoError(s, c.Create(coordtest.Limited(s), w.Path("members/other"), nil))
		shows(s, observe(s, s.group()), "a=x")
		require.NoError(s, m.Leave(coordtest.Limited(s)))
	})
}

func TestWhatIsNoMemberIsRefused(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	c := coordtest.Open(t, w.ConnectString())
	for _, path := range []string{"", "/", "members", "/a//b"} {
		require.ErrorIs(t, coordtest.Err(group.New(c, path)), coord.ErrInvalid, "%q", path)
	}
	require.ErrorIs(t, coordtest.Err(group.New(nil, "/members")), coord.ErrInvalid)
	g := of(t, c, w.Path("members"))
	for _, id := range []string{"", "a/b", "..", "a\x00"} {
		require.ErrorIs(t, coordtest.Err(g.Join(coordtest.Limited(t), id, nil)), coord.ErrInvalid, "%q", id)
	}
	require.ErrorIs(t, coordtest.Err(g.Join(coordtest.Limited(t), "a", []byte("__REVOKE__"))), coord.ErrInvalid)
	m := join(t, g, "a", "x")
	require.ErrorIs(t, m.Set(coordtest.Limited(t), []byte("__REVOKE__")), coord.ErrInvalid)
	require.NoError(t, m.Leave(coordtest.Limited(t)))
}

// The process before was killed: the servers keep its session for a while.
func TestAProcessThatWasStartedAgainJoinsWhenItsFormerSessionIsOver(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		former := b.Open()
		old, err := of(b, former, "/members").Join(b.Context(), "a", []byte("old"))
		require.NoError(b, err)
		cut := b.Server.Partition(zkembed.Cut{Sessions: []int64{former.Info().SessionID}})
		begun := time.Now()
		m, err := of(b, b.Open(), "/members").Join(b.Context(), "a", []byte("new"))
		require.NoError(b, err)
		require.ErrorIs(b, old.Err(), coord.ErrLost, "two have the ID")
		require.LessOrEqual(b, time.Since(begun), coordtest.T+2*coordtest.Tick)
		cut.Heal()
		require.NoError(b, m.Leave(b.Context()))
	})
}

func TestWhatAGroupCosts(t *testing.T) {
	w := zktest.NewEmbedded(t, zkembed.WithSessionTimeouts(0, time.Hour))
	open := func() *coord.Client {
		return coordtest.Open(t, w.ConnectString(), coord.WithSessionTimeout(time.Minute))
	}
	c, watcher := open(), open()
	g := of(t, c, "/members")
	const n = 10
	for i := range n {
		join(t, g, string(rune('a'+i)), "x")
	}
	seen := observe(t, of(t, watcher, "/members"))
	require.Len(t, zktest.Receive(t, coordtest.Soon, seen, "the members"), n)
	before := w.Embedded().SessionCounts(watcher.Info().SessionID)
	join(t, g, "z", "x")
	require.Len(t, zktest.Receive(t, coordtest.Soon, seen, "one more"), n+1)
	require.Equal(t, zkembed.Counts{zkembed.OpGetChildren2: 1, zkembed.OpGetData: 1, zkembed.OpNotify: 1},
		w.Embedded().SessionCounts(watcher.Info().SessionID).Since(before))
}

// A membership that is broken by hand has a successor before its client hears.
func TestTheDataOfTheNextMemberStay(t *testing.T) {
	for name, disturb := range map[string]func(b coordtest.Bubble, session int64){
		"it is not watched yet": func(coordtest.Bubble, int64) {},
		"the server lags": func(b coordtest.Bubble, session int64) {
			time.Sleep(time.Second)
			b.Server.AddFollower(2*time.Second, session)
		},
		"the events are late": func(b coordtest.Bubble, session int64) {
			time.Sleep(time.Second)
			b.Server.Inject(zkembed.Match{Session: session}, zkembed.DelayEvents(2*time.Second))
		},
	} {
		t.Run(name, func(t *testing.T) {
			coordtest.InBubble(t, func(b coordtest.Bubble) {
				c, other := b.Open(), b.Open()
				former, err := of(b, c, "/members").Join(b.Context(), "a", []byte("old"))
				require.NoError(b, err)
				disturb(b, c.Info().SessionID)
				require.NoError(b, inspect.Break(b.Context(), other, former.Node()))
				require.NoError(b, coordtest.Err(of(b, other, "/members").Join(b.Context(), "a", []byte("new"))))
				require.ErrorIs(b, former.Set(b.Context(), []byte("stale")), coord.ErrLost)
				members, err := of(b, other, "/members").Members(b.Context())
				require.NoError(b, err)
				require.Equal(b, []string{"a=new"}, texts(members))
			})
		})
	}
}
