package coordtest

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// Soon is how long a test waits for what must happen, on a busy machine too.
const Soon = 20 * time.Second

// Limited returns a context in which what must happen has to happen.
func Limited(t testing.TB) context.Context {
	t.Helper()
	return Within(t, Soon)
}

// Within returns a context that ends with the test, and after a time.
func Within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// Open returns a client of the servers that is closed with the test. Its
// session lasts [zktest.SessionTimeout], if opts do not say otherwise.
func Open(t testing.TB, servers string, opts ...coord.Option) *coord.Client {
	t.Helper()
	opts = append([]coord.Option{
		coord.WithSessionTimeout(zktest.SessionTimeout), coord.WithTick(zktest.DefaultTick),
	}, opts...)
	c, err := coord.Open(Limited(t), servers, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
	return c
}

// Err returns the error alone of a call that returns something else, too.
func Err[V any](_ V, err error) error { return err }

// Last returns the error that a sequence ends with.
func Last[V any](all iter.Seq2[V, error]) (err error) {
	for _, err = range all {
	}
	return err
}

// Go calls f in the background, and tells what it returned.
func Go[V any](f func() V) <-chan V {
	done := make(chan V, 1)
	go func() { done <- f() }()
	return done
}

// Acquire acquires what must be had soon.
func Acquire[H any](t testing.TB, a interface {
	Acquire(ctx context.Context) (H, error)
},
) H {
	t.Helper()
	return Call(t, a.Acquire)
}

// Write has the servers agree on a write that changes nothing.
func Write(ctx context.Context, c *coord.Client) error {
	return recipe.Retry(ctx, c, func(ctx context.Context) error {
		_, err := c.Txn(ctx, coord.CheckOp("/", -1))
		return err
	})
}
