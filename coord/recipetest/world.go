package recipetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/virtual"
	"github.com/zkcoord/zkcoord/zkembed"
)

const (
	timeout  = 30 * time.Second // of sessions
	patience = time.Hour        // after which a call hangs
)

// world is where one condition is tested: a server in virtual time.
type world[R any] struct {
	*testing.T
	recipe Recipe[R]
	server *zkembed.Server
	ctx    context.Context
	paths  int
}

// run tests one condition. When all clients are closed, nothing of a session
// may be left.
func run[R any](t *testing.T, r Recipe[R], test func(w *world[R])) {
	virtual.Test(t, func(t *testing.T) {
		server, err := zkembed.Start(zkembed.WithAddr(""), zkembed.WithTick(timeout/15), zkembed.WithReaper(0))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Close() })
		ctx, cancel := context.WithTimeout(t.Context(), 1000*patience)
		t.Cleanup(cancel)
		test(&world[R]{T: t, recipe: r, server: server, ctx: ctx})
		if t.Failed() {
			return
		}
		time.Sleep(2 * timeout) // for sessions whose closing did not arrive
		for _, n := range server.Nodes() {
			if n.Stat.EphemeralOwner != 0 {
				t.Errorf("%s is left behind", n.Path)
			}
		}
		if watched := server.Watched(); len(watched) > 0 {
			t.Errorf("watches are left: %q", watched)
		}
	})
}

// user is a client that uses a recipe.
type user[R any] struct {
	*world[R]
	client *coord.Client
	path   string
	r      R
}

// fresh returns a path of its own.
func (w *world[R]) fresh() string {
	w.paths++
	return fmt.Sprintf("/recipetest/%d", w.paths)
}

// user opens a client that uses the recipe at a path.
func (w *world[R]) user(path string) *user[R] {
	w.Helper()
	c, err := coord.Open(w.ctx, w.server.ConnectString(), coord.WithSessionTimeout(timeout),
		coord.WithDialer(w.server.DialContext))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = c.Close(context.Background()) })
	r, err := w.recipe.New(c, path)
	if err != nil {
		w.Fatalf("New: %v", err)
	}
	return &user[R]{w, c, path, r}
}

func (u *user[R]) close() { _ = u.client.Close(context.Background()) }

// prepare makes a call that is no test itself and must succeed. It lets the
// call's work in the background end, so that none of its requests counts as the
// next call's.
func (u *user[R]) prepare(what string, f func(ctx context.Context, r R) error) {
	u.Helper()
	if f == nil {
		return
	}
	select {
	case err := <-begin(u.ctx, u, f):
		if err != nil {
			u.Fatalf("%s: %v", what, err)
		}
	case <-time.After(patience):
		u.Fatalf("%s: it hangs", what)
	}
	time.Sleep(time.Millisecond)
}

// begin makes a call in the background.
func begin[R any](ctx context.Context, u *user[R], f func(context.Context, R) error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f(ctx, u.r) }()
	return done
}

// outcome waits for the end of a call.
func (u *user[R]) outcome(done <-chan error) error {
	u.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		u.close() // so that it need not hang on
		u.Fatal("the call hangs")
		return nil
	}
}

// nodes counts the ephemeral nodes of the user's client.
func (u *user[R]) nodes() (n int) {
	session := u.client.Info().SessionID
	for _, node := range u.server.Nodes() {
		if node.Stat.EphemeralOwner == session {
			n++
		}
	}
	return n
}

// left fails if the client has more nodes than it had before a call that
// failed. What its session shares, such as a witness, has time to go.
func (u *user[R]) left(before int) {
	u.Helper()
	time.Sleep(4 * timeout)
	if now := u.nodes(); now > before {
		u.Errorf("the call failed and left %d nodes behind", now-before)
	}
}
