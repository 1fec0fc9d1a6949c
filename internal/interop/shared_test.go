package interop

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/counter"
	"github.com/zkcoord/zkcoord/coord/group"
	"github.com/zkcoord/zkcoord/coord/value"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// The peers of testdata/java/SharedPeer.java and testdata/python/shared_peer.py
// share groups, values and counters with this process.

// says asks until a peer gives the answer, which it may learn late.
func (c contender) says(t *testing.T, command, answer string) {
	t.Helper()
	said := ""
	zktest.Eventually(t, answersWithin, func() bool {
		c.Send(command)
		said = c.Line(answersWithin)
		return said == answer
	}, "%s says %q", c.name, answer)
}

// members are the texts that this process sees.
func members(t *testing.T, g *group.Group, text func(group.Member) string) func() []string {
	return func() (all []string) {
		listed, err := g.Members(patient(t))
		require.NoError(t, err)
		for _, m := range listed {
			all = append(all, text(m))
		}
		return all
	}
}

func TestGoAndJavaAreMembersOfOneGroup(t *testing.T) {
	curator := Java(t, "SharedPeer")
	withPeers(t, func(t *testing.T, w *zktest.World, path string) {
		g, err := group.New(openAs(t, w, coord.Curator), path+"/members")
		require.NoError(t, err)
		java := contend(t, w, curator, path, "java")
		same := contend(t, w, curator, path, "go")
		seen := members(t, g, func(m group.Member) string { return m.ID + "=" + string(m.Data) })
		java.wants(t, "ready")
		same.wants(t, "ready")
		java.must(t, "join one", "joined")
		m, err := g.Join(patient(t), "go", []byte("two"))
		require.NoError(t, err)
		java.says(t, "members", "go=two,java=one")
		require.Equal(t, []string{"go=two", "java=one"}, seen())

		require.NoError(t, m.Set(patient(t), []byte("three")))
		java.must(t, "data four", "changed")
		java.says(t, "members", "go=three,java=four")
		zktest.Eventually(t, answersWithin, func() bool { return strings.Join(seen(), ",") == "go=three,java=four" },
			"Go sees the new data")

		same.must(t, "join five", "joined") // has the ID when Go leaves it
		require.NoError(t, m.Leave(patient(t)))
		zktest.Eventually(t, answersWithin, func() bool { return strings.Join(seen(), ",") == "go=five,java=four" },
			"Java takes the ID")
		java.Kill()
		zktest.Eventually(t, answersWithin, func() bool { return strings.Join(seen(), ",") == "go=five" },
			"the member of a dead session goes")
		same.must(t, "leave", "left")
		zktest.Eventually(t, answersWithin, func() bool { return len(seen()) == 0 }, "all have left")
		same.quit(t)
	})
}

func TestGoAndPythonAreMembersOfOneGroup(t *testing.T) {
	kazoo := Python(t, "shared_peer.py")
	withPeers(t, func(t *testing.T, w *zktest.World, path string) {
		g, err := group.New(openAs(t, w, coord.Kazoo), path+"/members")
		require.NoError(t, err)
		python := contend(t, w, kazoo, path, "python")
		seen := members(t, g, func(m group.Member) string { return string(m.Data) })
		python.wants(t, "ready")
		m, err := g.Join(patient(t), "zz", []byte("two"))
		require.NoError(t, err)
		python.must(t, "join one", "joined")
		python.says(t, "members", "one,two")
		zktest.Eventually(t, answersWithin, func() bool { return strings.Join(seen(), ",") == "one,two" }, "Go sees Python")
		require.NoError(t, m.Set(patient(t), []byte("three")))
		python.says(t, "members", "one,three")
		require.NoError(t, m.Leave(patient(t)))
		python.says(t, "members", "one")
		python.must(t, "leave", "left")
		zktest.Eventually(t, answersWithin, func() bool { return len(seen()) == 0 }, "all have left")
		python.quit(t)
	})
}

func TestGoAndJavaShareAValue(t *testing.T) {
	curator := Java(t, "SharedPeer")
	withPeers(t, func(t *testing.T, w *zktest.World, path string) {
		v, err := value.New(openAs(t, w, coord.Curator), path+"/value")
		require.NoError(t, err)
		one, two := contend(t, w, curator, path, "one"), contend(t, w, curator, path, "two")
		one.wants(t, "ready")
		two.wants(t, "ready")
		one.must(t, "seed first", "first")
		two.must(t, "seed other", "first")
		require.NoError(t,
			v.Change(patient(t), func(now value.State) ([]byte, error) { return append(now.Data[:5:5], "-go"...), nil }))
		one.says(t, "value", "first-go")
		two.says(t, "value", "first-go")
		read, err := v.Get(patient(t))
		require.NoError(t, err)
		one.must(t, "set java", "set")
		require.ErrorIs(t, v.TrySet(patient(t), read, []byte("late")), coord.ErrBadVersion)
		now, err := v.Get(patient(t))
		require.NoError(t, err)
		require.Equal(t, "java", string(now.Data))
		one.quit(t)
		two.quit(t)
	})
}

// shareANumber has Go and a peer add at the same time.
func shareANumber(t *testing.T, n *counter.Counter, command string, peer contender) {
	t.Helper()
	const each = 10
	var adding sync.WaitGroup
	for range each {
		peer.Send(command + " 1")
	}
	for range 2 {
		adding.Go(func() {
			for range each {
				if _, err := n.Add(patient(t), 1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	sums := map[string]bool{}
	for range each {
		sum := peer.Line(answersWithin)
		require.False(t, sums[sum], "two have %s", sum)
		sums[sum] = true
	}
	adding.Wait()
	sum, err := n.Add(patient(t), 1000)
	require.NoError(t, err)
	require.EqualValues(t, 1000+each*3, sum)
	peer.must(t, command+" 1", fmt.Sprint(sum+1))
}

func TestGoJavaAndPythonCountTogether(t *testing.T) {
	curator, kazoo := Java(t, "SharedPeer"), Python(t, "shared_peer.py")
	withPeers(t, func(t *testing.T, w *zktest.World, path string) {
		c, k := openAs(t, w, coord.Curator), openAs(t, w, coord.Kazoo)
		java, python := contend(t, w, curator, path, "java"), contend(t, w, kazoo, path, "python")
		java.wants(t, "ready")
		python.wants(t, "ready")
		for _, of := range []struct {
			client        *coord.Client
			name, command string
			peer          contender
			opts          []counter.Option
		}{
			{c, "/count", "add", java, nil},
			{c, "/long", "addlong", java, []counter.Option{counter.Int64()}},
			{c, "/curator", "addcurator", python, nil},
			{k, "/digits", "add", python, nil},
		} {
			n, err := counter.New(of.client, path+of.name, of.opts...)
			require.NoError(t, err)
			if of.peer == java && of.command == "add" {
				java.must(t, "count", "0")
			}
			shareANumber(t, n, of.command, of.peer)
		}
		java.quit(t)
		python.quit(t)
	})
}
