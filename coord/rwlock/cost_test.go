package rwlock_test

import (
	"testing"
	"time"

	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// embedded returns a scene on a server that counts requests. Its sessions may
// last so long that no probe and no ping gets into the count.
func embedded(t *testing.T) scene {
	t.Helper()
	w := zktest.NewEmbedded(t, zkembed.WithSessionTimeouts(0, time.Hour))
	return scene{t, w, w.Path("lock")}
}
