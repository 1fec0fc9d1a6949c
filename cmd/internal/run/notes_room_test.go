//go:build linux || darwin || freebsd || openbsd

package run

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

func TestTheObjectHasRoomBesideNotesThatAreNotRead(t *testing.T) {
	t.Parallel()
	for _, end := range []func(*term.Streams){
		func(s *term.Streams) { s.Tell(map[string]any{"status": 7}) },
		func(s *term.Streams) { s.Finish(term.Silently(7), func(error) string { return "" }) },
	} {
		read, write, err := os.Pipe()
		require.NoError(t, err)
		told := term.NewNotes(write)
		s := &term.Streams{Err: told, JSON: true, Account: term.Account{Runs: true}}
		n := newNarrator(s, &job{Verbose: true, Paths: conn.NodePaths{"/l"}})
		for range 2 * term.MostNotes / len(`{"event":"confirmed"}`) {
			n.tell("confirmed", nil, "confirmed")
		}
		end(s)
		text := make(chan string)
		go func() {
			all, _ := io.ReadAll(read)
			text <- string(all)
		}()
		told.Flush()
		require.NoError(t, write.Close())
		lines := strings.Split(strings.TrimSpace(<-text), "\n")
		require.NoError(t, read.Close())
		require.EqualValues(t, 7, cmdtest.Parse[map[string]any](t, lines[len(lines)-1])["status"])
		require.Greater(t, len(lines), 100)
	}
}
