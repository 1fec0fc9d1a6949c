//go:build linux || darwin || freebsd || openbsd

package cmdtest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/barrier"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/coord/semaphore"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// World is a world on the embedded server, for a test that runs in parallel
// with others.
func World(t *testing.T) *zktest.World {
	t.Helper()
	t.Parallel()
	return zktest.New(t, zktest.Embedded)
}

// Each runs a test on each kind of server, in parallel with other tests.
func Each(t *testing.T, test func(t *testing.T, w *zktest.World)) {
	t.Helper()
	t.Parallel()
	zktest.Each(t, test)
}

// EachPrivate is Each on servers of the test's own.
func EachPrivate(t *testing.T, test func(t *testing.T, w *zktest.World), backends ...zktest.Backend) {
	t.Helper()
	t.Parallel()
	zktest.EachPrivate(t, test, backends...)
}

// Contend puts nodes of other programs' contenders into a directory.
func Contend(t *testing.T, w *zktest.World, dir string, nodes map[string]string) {
	t.Helper()
	conn := w.Admin()
	lay(t, conn, dir, zk.WorldACL(zk.PermAll))
	for name, data := range nodes {
		_, err := conn.Create(dir+"/"+name, []byte(data), zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		for name := range nodes {
			_ = conn.Delete(dir+"/"+name, -1)
		}
	})
}

// lay makes the nodes down to path that are not there, the last with this ACL.
func lay(t *testing.T, conn *zk.Conn, path string, acl []zk.ACL) {
	t.Helper()
	for at := 1; at <= len(path); at++ {
		of := zk.WorldACL(zk.PermAll)
		if at == len(path) {
			of = acl
		} else if path[at] != '/' {
			continue
		}
		if _, err := conn.Create(path[:at], nil, 0, of); err != nil {
			require.ErrorIs(t, err, zk.ErrNodeExists)
		}
	}
}

const (
	Guid1 = "11111111-1111-4111-8111-111111111111"
	Guid2 = "22222222-2222-4222-8222-222222222222"
	Guid3 = "33333333-3333-4333-8333-333333333333"
)

// Must is for what has to go well in the preparation of a test.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Open returns a client whose session a busy machine does not end.
func Open(t testing.TB, w *zktest.World, opts ...coord.Option) *coord.Client {
	t.Helper()
	return coordtest.Open(t, w.ConnectString(),
		append([]coord.Option{coord.WithSessionTimeout(20 * time.Second)}, opts...)...)
}

// Below is the path that the world's own paths are below.
func Below(w *zktest.World) string { return strings.TrimSuffix(w.Path("x"), "/x") }

// Waits starts something that is to wait, until the test ends.
func Waits[T any](t *testing.T, w *zktest.World, dir string, n int, acquire func(context.Context) (T, error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := acquire(ctx)
		if ctx.Err() == nil {
			t.Errorf("it does not wait at %s: %v", dir, err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	AwaitContenders(t, w.Admin(), dir, n)
}

// EveryRecipe makes one of each recipe below the world's path.
func EveryRecipe(t *testing.T, w *zktest.World) (holder, other *coord.Client) {
	ctx := t.Context()
	holder = Open(t, w, coord.WithIdentity("holder"))
	other = Open(t, w, coord.WithIdentity("other"))
	Must(Must(lock.New(holder, w.Path("app/lock"))).Acquire(ctx))
	Waits(t, w, w.Path("app/lock"), 2, Must(lock.New(other, w.Path("app/lock"))).Acquire)
	shared := Must(rwlock.New(holder, w.Path("app/shared")))
	Must(shared.AcquireRead(ctx))
	Must(shared.AcquireRead(ctx))
	Waits(t, w, w.Path("app/shared"), 3, Must(rwlock.New(other, w.Path("app/shared"))).AcquireWrite)
	Must(Must(election.New(holder, w.Path("app/deep/er/leader"))).Campaign(ctx, nil))
	Must(Must(semaphore.New(holder, w.Path("app/licence"), 2)).AcquireN(ctx, 2))
	Waits(t, w, w.Path("app/licence/leases"), 3, Must(semaphore.New(other, w.Path("app/licence"), 2)).Acquire)
	require.NoError(t, Must(barrier.New(holder, w.Path("app/gate"))).Set(ctx))
	Waits(t, w, w.Path("app/round"), 2, Must(doublebarrier.New(holder, w.Path("app/round"), 2)).Enter)
	q := Must(queue.New(holder, w.Path("app/jobs")))
	require.NoError(t, q.Put(ctx, []byte("one")))
	require.NoError(t, q.Put(ctx, []byte("two")))
	return holder, other
}

// Seen is what inspect says of a path, in JSON and to people.
func Seen[T any](t *testing.T, w *zktest.World, path string, options ...string) (r T, text string) {
	t.Helper()
	args := append([]string{"inspect", path}, options...)
	return Parse[T](t, On(t, w, append(args, "--json")...).Gives(0)), On(t, w, args...).Gives(0)
}

// ByHand makes a node as a person would: it belongs to no session.
func ByHand(t *testing.T, w *zktest.World, path, data string) {
	t.Helper()
	_, err := w.Admin().Create(path, []byte(data), 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
}

// Private makes the node private: one user may do everything, others what else
// says.
func Private(t *testing.T, w *zktest.World, user, password string, others ...zk.ACL) {
	t.Helper()
	conn := w.Admin()
	require.NoError(t, conn.AddAuth("digest", []byte(user+":"+password))) // to clear up
	lay(t, conn, w.Path("private"), append(zk.DigestACL(zk.PermAll, user, password), others...))
}
