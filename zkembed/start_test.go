package zkembed_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/zkembed"
)

// docs/server.md shows this.
func TestAServerForATestTakesThreeLines(t *testing.T) {
	server, err := zkembed.Start()
	require.NoError(t, err)
	defer server.Close()
	conn, _, err := zk.Connect([]string{server.ConnectString()}, 10*time.Second)
	require.NoError(t, err)
	defer conn.Close()
	_, _, err = conn.Children("/")
	require.NoError(t, err)
}

func BenchmarkStartAndClose(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		s, err := zkembed.Start()
		if err != nil {
			b.Fatal(err)
		}
		_ = s.Close()
	}
}
