//go:build linux || darwin || freebsd || openbsd

package see

import (
	"path"
	"slices"
	"syscall"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// Contenders of unknown recipes stand alone at one path, and at another before
// and behind claims of this program.
func TestF64EveryVerbShowsContendersOfUnknownRecipes(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		client := cmdtest.Open(t, w)
		alone, beside := w.Path("app/alone"), w.Path("app/beside")
		var nodes []string
		stranger := func(dir, begins string) (node string) {
			require.NoError(t, client.EnsureDir(t.Context(), dir))
			node = cmdtest.Must(w.Admin().Create(dir+"/"+begins, nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll)))
			nodes = append(nodes, node)
			return node
		}
		for _, begins := range coordtest.UnknownRecipes {
			stranger(alone, begins)
		}
		before := stranger(beside, "n_")
		waits := cmdtest.Must(
			client.Txn(t.Context(),
				coord.EphemeralOp(beside+"/_c_0b1f7a3c-98aa-8a53-8d0b-5f2f3d1c2e4a-lock-0000000001", nil)))[0].Path
		behind := stranger(beside, "x-1-")
		t.Cleanup(func() {
			for _, node := range append(nodes, waits) {
				_ = w.Admin().Delete(node, -1)
			}
		})

		// inspect
		r, text := cmdtest.Seen[look.Report](t, w, alone)
		require.Equal(t, look.UnknownKind, r.Kind)
		require.Equal(t, string(coord.Unknown), r.Dialect)
		require.Len(t, r.Contenders, len(coordtest.UnknownRecipes))
		require.Zero(t, r.Others)
		require.Empty(t, r.Holders())
		require.Contains(t, text, alone+": an unknown recipe")
		r, text = cmdtest.Seen[look.Report](t, w, beside)
		require.Equal(t, "mixed", r.Kind)
		require.Equal(t, []string{before, waits, behind},
			[]string{r.Contenders[0].Node, r.Contenders[1].Node, r.Contenders[2].Node})
		require.Equal(t, []string{look.UnknownKind, "waits", look.UnknownKind},
			[]string{r.Contenders[0].State, r.Contenders[1].State, r.Contenders[2].State})
		require.Contains(t, text, "2 contenders are of an unknown recipe beside others")

		// ls
		l := cmdtest.Parse[Listing](t, cmdtest.On(t, w, "--json", "ls", cmdtest.Below(w)).Gives(0))
		require.Len(t, l.Recipes, 2)
		require.Equal(t, []string{look.UnknownKind, "mixed"}, []string{l.Recipes[0].Kind, l.Recipes[1].Kind})
		require.Empty(t, l.Recipes[0].Odd)
		require.Len(t, l.Recipes[1].Odd, 1)

		// graph
		g := cmdtest.Parse[WaitGraph](t, cmdtest.On(t, w, "--json", "graph", cmdtest.Below(w)).Gives(0))
		require.Len(t, g.Waits, 1)
		require.Equal(t, []string{waits, before}, []string{g.Waits[0].Node, g.Waits[0].ForNode})

		// doctor
		p := cmdtest.On(t, w, "--json", "doctor", cmdtest.Below(w))
		d := cmdtest.Parse[Diagnosis](t, p.Gives(term.ExitFailed))
		for _, at := range []string{alone, beside} {
			require.True(t,
				slices.ContainsFunc(d.Findings,
					func(f finding) bool { return f.Where == at && f.Wrong == (at == beside) }), "%v", d)
		}

		// exporter and page
		e := cmdtest.On(t, w, "exporter", "--listen", "127.0.0.1:0", cmdtest.Below(w))
		require.Contains(t, scrape(t, e.Line()), `zkcoord_path_unknown_contenders{kind="mixed",path="`+beside+`"} 2`)
		e.EndsBy(syscall.SIGTERM, 0)
		u := cmdtest.On(t, w, "ui", "--listen", "127.0.0.1:0", cmdtest.Below(w))
		seen := sightAt(t, u.Line())
		require.Equal(t, look.UnknownKind, seen.Recipes[alone].Kind)
		u.EndsBy(syscall.SIGTERM, 0)

		// lock
		for _, at := range []string{alone, beside} {
			cmdtest.On(t, w, "lock", "--try", at, "--", "true").Ends(125, path.Base(cmdtest.Must(first(w, at))))
		}
	})
}

func TestEveryVerbShowsALineThatIsDescribed(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		const dialect = "prefix=n_,revoke=please"
		at := w.Path("app/described")
		in := func(args ...string) *cmdtest.Process { return cmdtest.On(t, w, append(args, "--dialect", dialect)...) }
		holder := cmdtest.On(t, w, cmdtest.Sh(at, `trap 'exit 9' TERM; `+cmdtest.Busy, "--dialect", dialect)...).Begun()
		waiter := cmdtest.On(t, w, cmdtest.Sh(at, "exit 3", "--dialect", dialect)...)
		zktest.Eventually(t, cmdtest.Soon, func() bool {
			names, _, err := w.Admin().Children(at)
			return err == nil && len(names) == 2
		}, "nobody waits")

		r := cmdtest.Parse[look.Report](t, in("--json", "inspect", at).Gives(0))
		require.Equal(t, []string{"lock", dialect}, []string{r.Kind, r.Dialect})
		require.Zero(t, r.Others)
		require.Equal(t, []string{"holds", "waits"}, []string{r.Contenders[0].State, r.Contenders[1].State})
		held, waits := r.Contenders[0].Node, r.Contenders[1].Node
		l := cmdtest.Parse[Listing](t, in("--json", "ls", cmdtest.Below(w)).Gives(0))
		require.Len(t, l.Recipes, 1)
		require.Len(t, l.Recipes[0].Holders, 1)
		g := cmdtest.Parse[WaitGraph](t, in("--json", "graph", cmdtest.Below(w)).Gives(0))
		require.Len(t, g.Waits, 1)
		require.Equal(t, []string{waits, held}, []string{g.Waits[0].Node, g.Waits[0].ForNode})
		require.Contains(t, cmdtest.On(t, w, "graph", cmdtest.Below(w)).Gives(0), "--dialect 'prefix=n_'", "without it")
		d := cmdtest.Parse[Diagnosis](t, in("--json", "doctor", cmdtest.Below(w)).Gives(0))
		require.False(t, slices.ContainsFunc(d.Findings, func(f finding) bool { return f.Where == at }), "%v", d)
		u := in("ui", "--listen", "127.0.0.1:0", cmdtest.Below(w))
		require.Equal(t, "lock", sightAt(t, u.Line()).Recipes[at].Kind)
		u.EndsBy(syscall.SIGTERM, 0)
		in("held", "--node", held, at).Gives(0)

		cmdtest.On(t, w, "revoke", at, "--node", path.Base(held)).Ends(term.ExitFailed, "its recipe is unknown")
		in("revoke", at, "--wait").Gives(0)
		require.Equal(t, 9, holder.Exit())
		require.Equal(t, 3, waiter.Exit())
	})
}

// first is the contender with the lowest number at a path.
func first(w *zktest.World, dir string) (string, error) {
	names, _, err := w.Admin().Children(dir)
	return look.LineOf(names)[0].Name, err
}

// Nodes of other programs that look like contenders, but belong to no session,
// do not hide what is below them.
func TestF64LocksBelowNumberedDirectoriesAreShown(t *testing.T) {
	cmdtest.Each(t, func(t *testing.T, w *zktest.World) {
		p := cmdtest.On(t, w, cmdtest.Sh(w.Path("orders/1234567890"), cmdtest.UntilEOF)...).Begun()
		r, _ := cmdtest.Seen[look.Report](t, w, w.Path("orders"))
		require.Empty(t, r.Kind)
		require.Equal(t, 1, r.Others)
		l := cmdtest.Parse[Listing](t, cmdtest.On(t, w, "--json", "ls", cmdtest.Below(w)).Gives(0))
		require.Len(t, l.Recipes, 1)
		require.Equal(t, w.Path("orders/1234567890"), l.Recipes[0].Path)
		p.LetGo(5)
	})
}
