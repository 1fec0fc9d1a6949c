//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestALabelIsShownOfTheHolderAndOfThoseWhoWait(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		path := w.Path("l")
		holder := patiently(t, w, sh(path, untilEOF, "--label", "nightly\t\x1b[31mbackup", "--on-revoke", "ignore")...)
		holder.line()
		waiter := patiently(t, w, sh(path, "exit 0", "--label", "monthly backup")...)
		awaitContenders(t, w.Admin(), path, 2)
		shown := func() report {
			r := parse[report](t, patiently(t, w, "--json", "inspect", path).line())
			require.Len(t, r.Contenders, 2)
			require.True(t, strings.HasPrefix(r.Contenders[0].Owner, "nightly\t\x1b[31mbackup "), r.Contenders[0].Owner)
			require.True(t, strings.HasPrefix(r.Contenders[1].Owner, "monthly backup "), r.Contenders[1].Owner)
			return r
		}
		require.False(t, shown().Contenders[0].Revoked)
		require.Equal(t, 0, patiently(t, w, "revoke", path).exit())
		require.True(t, shown().Contenders[0].Revoked)

		quoted := `"nightly\t\x1b[31mbackup `
		require.Contains(t, patiently(t, w, "inspect", path).output(), quoted)
		require.Contains(t, patiently(t, w, "ls", path).output(), quoted)
		require.Contains(t, patiently(t, w, "graph", path).output(), quoted)
		require.Contains(t, patiently(t, w, "graph", path).output(), `"monthly backup `)
		g := parse[waitGraph](t, patiently(t, w, "--json", "graph", path).line())
		require.Len(t, g.Waits, 1)
		require.True(t, strings.HasPrefix(g.Waits[0].ForWho, "nightly"))
		l := parse[listing](t, patiently(t, w, "--json", "ls", path).line())
		require.True(t, strings.HasPrefix(l.Recipes[0].Holders[0], "nightly"))

		require.NoError(t, holder.in.Close())
		require.Equal(t, 5, holder.exit())
		require.Equal(t, 0, waiter.exit())
	})
}

func TestEveryVerbThatHoldsHasALabel(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		putItems(t, w, "item")
		for name, verb := range map[string][]string{
			"l": sh(w.Path("l"), untilEOF, "--slots", "2"),
			"s": sh(w.Path("s"), untilEOF, "--shared"),
			"e": elect(w.Path("e"), untilEOF),
			"b": {"doublebarrier", "-n", "1", w.Path("b"), "--", "sh", "-c", untilEOF},
		} {
			p := patiently(t, w, append([]string{verb[0], "--label", "our " + name}, verb[1:]...)...)
			p.line()
			r := parse[report](t, patiently(t, w, "--json", "inspect", w.Path(name)).line())
			require.Len(t, r.Contenders, 1)
			require.True(t, strings.HasPrefix(r.Contenders[0].Owner, "our "+name+" "), r.Contenders[0].Owner)
			require.NoError(t, p.in.Close())
			require.Equal(t, 5, p.exit())
		}
		p := patiently(t, w, "queue", "receive", "--label", "our q", w.Path("q"), "--", "sh", "-c", busy)
		p.line()
		r := parse[report](t, patiently(t, w, "--json", "inspect", w.Path("q")).line())
		require.True(t, strings.HasPrefix(r.Queue.First[0].Owner, "our q "), r.Queue.First[0].Owner)
		taker := patiently(t, w, "queue", "take", "--label", "our taker", "--timeout", "60", w.Path("q"))
		awaitContenders(t, w.Admin(), w.Path("q/consumers"), 1)
		owners := ""
		for _, c := range parse[report](t, patiently(t, w, "--json", "inspect", w.Path("q")).line()).Contenders {
			owners += c.Owner + "\n"
		}
		require.Contains(t, owners, "our taker ")
		putItems(t, w, "more")
		require.Equal(t, "more", taker.line())

		require.Equal(t, 0, patiently(t, w, "barrier", "set", "--label", "our gate", w.Path("gate")).exit())
		r = parse[report](t, patiently(t, w, "--json", "inspect", w.Path("gate")).line())
		require.True(t, strings.HasPrefix(r.Closed.By, "our gate "), r.Closed.By)
		p.signal(syscall.SIGTERM)
		require.Equal(t, 128+15, p.exit())
	})
}

// A name that is no label is not shown.
func TestWithoutALabelTheCommandsNameIsShown(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	strange := filepath.Join(t.TempDir(), "two\nlines")
	require.NoError(t, os.WriteFile(strange, []byte("#!/bin/sh\n"+untilEOF), 0o700))
	for command, want := range map[string]string{"/bin/sh": "sh ", strange: "coorddemo "} {
		p := patiently(t, w, "lock", w.Path("l"), "--", command, "-c", untilEOF)
		p.line()
		r := parse[report](t, patiently(t, w, "--json", "inspect", w.Path("l")).line())
		require.True(t, strings.HasPrefix(r.Contenders[0].Owner, want), r.Contenders[0].Owner)
		require.NoError(t, p.in.Close())
		require.Equal(t, 5, p.exit())
	}
	require.Equal(t, 0, patiently(t, w, "barrier", "set", w.Path("gate")).exit())
	r := parse[report](t, patiently(t, w, "--json", "inspect", w.Path("gate")).line())
	require.True(t, strings.HasPrefix(r.Closed.By, "coorddemo "), r.Closed.By)
}

func TestALabelIsOneLineAndNotTooLong(t *testing.T) {
	for label, message := range map[string]string{
		"":                       "the label is empty",
		"two\nlines":             "must be one line",
		"\rback":                 "must be one line",
		strings.Repeat("x", 257): "257 bytes; 256 at most",
	} {
		for _, verb := range [][]string{{"lock"}, {"elect"}, {"doublebarrier", "-n", "2"}, {"queue", "receive"}} {
			status, _, says := inProcess(append(verb, "--label", label, "/l", "--", "true")...)
			require.Equal(t, exitUsage, status)
			require.Contains(t, says, message)
		}
	}
	p := start(t, "lock", "--label", "two\nlines", "/l", "--", "true")
	require.Equal(t, exitUsage, p.exit())
	require.Contains(t, p.stderr.String(), "must be one line")
	w := zktest.New(t, zktest.Embedded)
	require.Equal(t, 0, patiently(t, w, "lock", "--label", strings.Repeat("x", 256), w.Path("l"), "--", "true").exit())
	for _, args := range [][]string{
		{"elect", "--data", "x", "--label", "y", "/e", "--", "true"}, {"elect", "--who", "--label", "y", "/e"},
	} {
		p := start(t, args...)
		require.Equal(t, exitUsage, p.exit())
		require.Contains(t, p.stderr.String(), "--label")
	}
}
