//go:build linux

package attend_test

import (
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/internal/promtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// refused has the attendant refuse clients again and again, until the test
// ends: they do not speak its protocol.
func refused(t *testing.T, socket string) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stop); <-stopped })
	go func() {
		defer close(stopped)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			if conn, err := net.Dial("unix", socket); err == nil {
				_, _ = conn.Write([]byte(strings.Repeat("hello?", 100)))
				_ = conn.Close()
			}
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
}

// Each rule about attendants is tried on the metrics of one. A minute of the
// rules is a second here.
func TestF96AnAttendantsMetricsRaiseTheAlerts(t *testing.T) {
	promtest.Tool(t, "prometheus")
	w := zktest.New(t, zktest.Embedded)
	dir, err := os.MkdirTemp("", "attend")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	a := cmdtest.Start(t, "--json", "attend", "--socket", dir+"/s", "--metrics", "127.0.0.1:0")
	told := cmdtest.Parse[map[string]string](t, a.Line())
	prom := promtest.Start(t, "../../../contrib/prom/alerts.yml", strings.TrimPrefix(told["metrics"], "http://"))

	var holders []*cmdtest.Process
	for name, timeout := range map[string]string{"long": T, "short": "6s"} {
		options := []string{"--zk", w.ConnectString(), "--session-timeout", timeout, "--attendant", dir + "/s"}
		p := cmdtest.Start(t, slices.Concat(options, cmdtest.Sh(w.Path(name), cmdtest.Busy))...)
		p.Number()
		holders = append(holders, p)
	}
	prom.Awaits("zkcoord_attend_sessions == 2")
	w.Embedded().Stop()
	for _, p := range holders {
		p.Signal(syscall.SIGKILL)
	}
	prom.Fires("ZkcoordAttendantFails") // the short session is over
	w.Embedded().Resume()
	prom.Fires("ZkcoordAttendantSlow")
	refused(t, dir+"/s")
	prom.Fires("ZkcoordAttendantRefuses")
	a.Signal(syscall.SIGKILL)
	prom.Fires("ZkcoordAttendantGone")
}
