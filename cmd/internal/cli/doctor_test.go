//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestTheDoctorFindsNothing(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		everyRecipe(t, w)
		p := on(t, w, "doctor", below(w))
		text := p.output()
		require.Equal(t, 0, p.exit(), text)
		require.Regexp(t, `(?m)^ok +\S+ +(standalone|leader|follower), a write takes `, text)
		require.Regexp(t, `(?m)^ok +\S+ +session time-out 2s`, text)
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
	w := zktest.New(t, zktest.Embedded)
	tangle(t, w)
	_, err := w.Admin().Create(w.Path("secret"), nil, 0, zk.DigestACL(zk.PermAll, "user", "password"))
	require.NoError(t, err)
	p := on(t, w, "--json", "doctor", below(w))
	require.Equal(t, exitFailed, p.exit())
	d := parse[diagnosis](t, p.line())
	require.Empty(t, p.output(), "one object")
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
	require.Len(t, wrong, 5, "these and the circle: %v", wrong)
	text := on(t, w, "doctor", below(w)).output()
	require.Regexp(t, `(?m)^WRONG +`+below(w)+` +sessions wait for each other: 0x\w+, 0x\w+$`, text)
	require.Contains(t, text, "5 things are wrong; ")
}

func TestTheDoctorSeesServersThatAreNotThere(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	gone := closedPort(t)
	p := start(t, "--zk", w.ConnectString()+","+gone, "--connect-timeout", "5s", "doctor", below(w))
	require.Equal(t, exitFailed, p.exit())
	text := p.output()
	require.Regexp(t, `(?m)^WRONG +`+gone+` +\S`, text)
	require.Contains(t, text, "which sessions are connected is not known: "+gone)

	p = start(t, "--zk", gone, "--connect-timeout", "500ms", "--json", "doctor")
	require.Equal(t, exitFailed, p.exit())
	require.Equal(t, 2, parse[diagnosis](t, p.line()).Wrong, "the server, and no session at all")

	p = start(t, "--zk", w.ConnectString()+"/nowhere", "doctor")
	require.Equal(t, exitFailed, p.exit())
	require.Contains(t, p.output(), "there is no chroot /nowhere")
}

func TestTheDoctorSeesASessionThatIsConnectedToNoServer(t *testing.T) {
	s := &survey{path: "/", recipes: []report{{Path: "/lock", Kind: "lock", Contenders: []contender{
		{Holds: true, State: "holds", Owner: "dead", Session: "0x7", Age: new(float64)}, {State: "waits", Owner: "alive", Session: "0x8", Age: new(float64)},
	}}}}
	d := &diagnosis{}
	d.disconnected(s, map[string]bool{"0x8": true})
	require.Len(t, d.Findings, 1)
	require.Contains(t, d.Findings[0].Found, `"dead" (0x7) holds, and its session is connected to no server`)
	require.Zero(t, d.Wrong, "another server may not be named")
}

// One server that does not answer takes no time from the others.
func TestTheDoctorLooksAtEachServerByItself(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	p := start(t, "--zk", silentServer(t)+","+w.ConnectString(), "--connect-timeout", "1s", "--json", "doctor", below(w))
	for _, f := range parse[diagnosis](t, p.line()).Findings {
		require.False(t, f.Wrong && f.Where == w.ConnectString(), f.Found)
	}
	require.Equal(t, exitUsage, start(t, "--zk", "a b", "doctor").exit())
	require.Equal(t, exitUsage, start(t, "--zk", w.ConnectString()+"/none", "--require-chroot", "doctor").exit())
}

func TestAddressesOfServers(t *testing.T) {
	addresses, chroot := addressesOf("zk1, zk2:2182,[::1]/app/a")
	require.Equal(t, []string{"zk1:2181", "zk2:2182", "[::1]:2181"}, addresses)
	require.Equal(t, "/app/a", chroot)
}
