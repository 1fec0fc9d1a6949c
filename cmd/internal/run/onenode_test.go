//go:build linux || darwin || freebsd || openbsd

package run

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestALockThatIsOneNodeExcludesProgramsThatLockSo(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		at := w.Path("controller")
		try := func(options ...string) *cmdtest.Process {
			return cmdtest.On(t, w,
				append(append([]string{"lock", "--try", "--one-node"}, options...), at, "--", "echo", "held")...)
		}
		require.Equal(t, "held", try().Gives(0))
		cmdtest.Must(w.Admin().Create(at, []byte("another program"), zk.FlagEphemeral, zk.WorldACL(zk.PermAll)))
		try().Ends(term.ExitBusy, `held by "another program"`)
		require.Contains(t, cmdtest.On(t, w, "inspect", at).Gives(0), "another program")
		cmdtest.On(t, w, "revoke", at).Ends(term.ExitFailed, "something else")
		for _, option := range []string{"--shared", "--slots=2", "--delay=1s", "--dialect=zookeeper"} {
			require.Equal(t, term.ExitUsage, try(option).Exit(), option)
		}
		waiting := cmdtest.On(t, w, cmdtest.Sh(at, cmdtest.UntilEOF, "--one-node", "--verbose")...)
		waiting.Tells("waiting for " + at)
		require.Contains(t, cmdtest.On(t, w, "break", "--yes", at).Gives(0), "deleted "+at)
		waiting.Begun()
		_, stat, err := w.Admin().Get(at)
		require.NoError(t, err)
		require.NotZero(t, stat.EphemeralOwner)
		waiting.LetGo(5)

		p := cmdtest.On(t, w, cmdtest.Sh(at, `trap 'exit 9' TERM; `+cmdtest.Busy, "--one-node")...).Begun()
		require.Contains(t, cmdtest.On(t, w, "revoke", "--wait", at).Gives(0), "given up")
		require.Equal(t, 9, p.Exit())
	})
}

// The names of such nodes are not unique, as names with a GUID are.
func TestACommandRunsUnderANodeAndNotUnderAnothersOfItsName(t *testing.T) {
	w := cmdtest.World(t)
	cmdtest.Contend(t, w, w.Path("there"), map[string]string{"n_0000000000": "another program", "x": "another program"})
	for _, lines := range [][]string{
		{"lock --dialect prefix=n_ PATH/here", "lock --dialect prefix=n_ --timeout 1s PATH/there"},
		{"lock --one-node PATH/here/x", "lock --one-node --timeout 1s PATH/there/x"},
	} {
		cmdtest.On(t, w, cmdtest.Nested(t, w, w.Path(""), lines, "true")...).Ends(term.ExitTimeout, "another program")
	}
}
