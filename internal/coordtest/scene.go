package coordtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// Scene is a test on some server, in some dialect.
type Scene struct {
	*testing.T
	W       *zktest.World
	Dialect coord.Dialect
}

// EachDialect runs f on both servers and in both dialects.
func EachDialect(t *testing.T, f func(s Scene)) {
	t.Helper()
	for _, dialect := range []coord.Dialect{coord.Curator, coord.Kazoo} {
		t.Run(string(dialect), func(t *testing.T) {
			zktest.Each(t, func(t *testing.T, w *zktest.World) { f(Scene{t, w, dialect}) })
		})
	}
}

// Open returns a client of the scene's dialect that is closed with the test.
func (s Scene) Open(opts ...coord.Option) *coord.Client {
	s.Helper()
	return s.OpenAt(s.W.ConnectString(), opts...)
}

// OpenAt is Open for other servers, such as the scene's behind a proxy.
func (s Scene) OpenAt(servers string, opts ...coord.Option) *coord.Client {
	s.Helper()
	return Open(s, servers, append([]coord.Option{coord.WithDialect(s.Dialect)}, opts...)...)
}

// Embedded returns an embedded server that is closed with the test.
func Embedded(t testing.TB) *zkembed.Server {
	t.Helper()
	server, err := zkembed.Start()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	return server
}
