//go:build linux || darwin || freebsd || openbsd

package see

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestShardsAreToldForWhatTheyAre(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		p := cmdtest.On(t, w, "shards", w.Path("s"), "--keys", "one", "--", "sh", "-c", "echo begun; exec sleep 60")
		require.Equal(t, "begun", p.Line())
		require.Contains(t, cmdtest.On(t, w, "inspect", w.Path("s")).Gives(0), "shards "+w.Path("s"))
		r := cmdtest.Parse[map[string]any](t, cmdtest.On(t, w, "inspect", w.Path("s"), "--json").Gives(0))
		require.Equal(t, "shards", r["kind"])
		require.Zero(t, r["others"])
		all := cmdtest.On(t, w, "ls", w.Path("")).Gives(0)
		require.Contains(t, all, w.Path("s")+"/keys/one", "who owns the key")
		require.NotContains(t, all, "/members")
		p.Signal(syscall.SIGTERM)
		p.Exit()
	})
}

func TestALedgerIsToldForWhatItIs(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		require.Zero(t, cmdtest.On(t, w, "once", w.Path("jobs"), "key", "--", "true").Exit())
		p := cmdtest.On(t, w, "cron", w.Path("cron"), "@every 1s", "--", "sh", "-c", "echo begun; exec sleep 60")
		require.Equal(t, "begun", p.Line())
		for _, kind := range []string{"once", "cron"} {
			at := map[string]string{"once": w.Path("jobs"), "cron": w.Path("cron")}[kind]
			require.Contains(t, cmdtest.On(t, w, "inspect", at).Gives(0), kind+" --list "+at)
			r := cmdtest.Parse[map[string]any](t, cmdtest.On(t, w, "inspect", at, "--json").Gives(0))
			require.Equal(t, kind, r["kind"])
			require.Zero(t, r["others"])
		}
		all := cmdtest.On(t, w, "ls", w.Path("")).Gives(0)
		require.Equal(t, 1, strings.Count(all, w.Path("jobs")), all)
		require.Contains(t, all, w.Path("cron")+"/keys/", "who runs the slot")
		require.NotContains(t, all, "guards")
		p.Signal(syscall.SIGTERM)
		p.Exit()
	})
}
