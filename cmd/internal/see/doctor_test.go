//go:build linux || darwin || freebsd || openbsd

package see

import (
	"net"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestTheDoctorFindsNothing(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		cmdtest.EveryRecipe(t, w)
		p := cmdtest.On(t, w, "doctor", cmdtest.Below(w))
		text := p.Output()
		require.Equal(t, 0, p.Exit(), text)
		require.Regexp(t, `(?m)^ok +\S+ +(standalone|leader|follower), a write takes `, text)
		require.Regexp(t, `(?m)^ok +\S+ +session time-out 20s`, text)
		require.Regexp(t, `(?m)^ok +/ +the servers' clock is -?\d+m?s from this machine's$`, text)
		require.Regexp(t, `(?m)^ok +\S+ +7 recipes, 0 circles$`, text)
		require.Contains(t, text, "0 things are wrong; ")
		require.NotContains(t, text, "not known", "all servers tell who is connected")
		names, _, err := w.Admin().Children("/")
		require.NoError(t, err)
		for _, name := range names {
			require.NotContains(t, name, "doctor", "its own node is left")
		}
	})
}

func TestTheDoctorTellsATangle(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	cmdtest.Tangle(t, w)
	_, err := w.Admin().Create(w.Path("secret"), nil, 0, zk.DigestACL(zk.PermAll, "user", "password"))
	require.NoError(t, err)
	p := cmdtest.On(t, w, "--json", "doctor", cmdtest.Below(w))
	require.Equal(t, term.ExitFailed, p.Exit())
	d := cmdtest.Parse[Diagnosis](t, p.Line())
	require.Empty(t, p.Output(), "one object")
	wrong := map[string]string{}
	for _, f := range d.Findings {
		if f.Wrong {
			require.NotEmpty(t, f.Do, f.Found)
			wrong[f.Found] = f.Where
		}
	}
	require.Len(t, wrong, d.Wrong)
	require.Equal(t, w.Path("mixed"), wrong["two dialects, which do not see each other"])
	require.Equal(t, w.Path("kazoo"), wrong["1 contender belongs to no session, and will never go by itself"])
	require.Equal(t, w.Path("kazoo"), wrong["2100000002 of 2147483647 sequence numbers are used up; use another path before the rest is"])
	require.Equal(t, w.Path("secret"), wrong["its children must not be listed with these credentials"])
	require.Len(t, wrong, 4, "%v", wrong)
	text := cmdtest.On(t, w, "doctor", cmdtest.Below(w)).Output()
	require.Regexp(t, `(?m)^ok +`+cmdtest.Below(w)+` +sessions 0x\w+, 0x\w+ wait for each other over `, text)
	require.Contains(t, text, "4 things are wrong; ")
}

func TestTheDoctorSeesServersThatAreNotThere(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	gone := cmdtest.ClosedPort(t)
	p := cmdtest.Start(t, "--zk", w.ConnectString()+","+gone, "--connect-timeout", "5s", "doctor", cmdtest.Below(w))
	require.Equal(t, term.ExitFailed, p.Exit())
	text := p.Output()
	require.Regexp(t, `(?m)^WRONG +`+gone+` +\S`, text)
	require.Contains(t, text, "which sessions are connected is not known: "+gone)

	p = cmdtest.Start(t, "--zk", gone, "--connect-timeout", "500ms", "--json", "doctor")
	require.Equal(t, term.ExitFailed, p.Exit())
	require.Equal(t, 2, cmdtest.Parse[Diagnosis](t, p.Line()).Wrong, "the server, and no session at all")

	p = cmdtest.Start(t, "--zk", w.ConnectString()+"/nowhere", "doctor")
	require.Equal(t, term.ExitFailed, p.Exit())
	require.Contains(t, p.Output(), "there is no chroot /nowhere")
}

func TestTheDoctorSeesASessionThatIsConnectedToNoServer(t *testing.T) {
	t.Parallel()
	s := &look.Survey{Path: "/", Recipes: []look.Report{{Path: "/lock", Kind: "lock", Contenders: []look.Contender{
		{Holds: true, State: "holds", Owner: "dead", Session: "0x7", Age: new(float64)}, {State: "waits", Owner: "alive", Session: "0x8", Age: new(float64)},
	}}}}
	d := &Diagnosis{}
	d.disconnected(s, map[string]conn.Remote{"0x8": {}})
	require.Len(t, d.Findings, 1)
	require.Contains(t, d.Findings[0].Found, `"dead" (0x7) holds, and its session is connected to no server`)
	require.Zero(t, d.Wrong, "another server may not be named")
}

func TestOneServerUnderTwoNamesIsNotSeveralEnsembles(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		addresses, _ := conn.AddressesOf(w.ConnectString())
		_, port, err := net.SplitHostPort(addresses[0])
		require.NoError(t, err)
		p := cmdtest.Start(t, "--zk", w.ConnectString()+",localhost:"+port, "doctor", cmdtest.Below(w))
		require.Zero(t, p.Exit(), "%s", p.Stderr.String())
		require.NotContains(t, p.Output(), "several ensembles")

		other := cmdtest.Start(t, "server", "--addr", "127.0.0.1:0")
		p = cmdtest.Start(t, "--zk", w.ConnectString()+","+other.Line(), "doctor", cmdtest.Below(w))
		require.Equal(t, term.ExitFailed, p.Exit())
		require.Contains(t, p.Output(), "several ensembles")
	})
}

// One server that does not answer takes no time from the others.
func TestTheDoctorLooksAtEachServerByItself(t *testing.T) {
	t.Parallel()
	w := zktest.New(t, zktest.Embedded)
	p := cmdtest.Start(t, "--zk", cmdtest.SilentServer(t)+","+w.ConnectString(), "--connect-timeout", "1s", "--json", "doctor", cmdtest.Below(w))
	for _, f := range cmdtest.Parse[Diagnosis](t, p.Line()).Findings {
		require.False(t, f.Wrong && f.Where == w.ConnectString(), f.Found)
	}
	require.Equal(t, term.ExitUsage, cmdtest.Start(t, "--zk", "a b", "doctor").Exit())
	require.Equal(t, term.ExitUsage, cmdtest.Start(t, "--zk", w.ConnectString()+"/none", "--require-chroot", "doctor").Exit())
}
