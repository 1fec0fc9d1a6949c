//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheObjectHasRoomBesideNotesThatAreNotRead(t *testing.T) {
	for _, end := range []func(*streams){
		func(s *streams) { s.tell(map[string]any{"status": 7}) },
		func(s *streams) { s.finish(silently(7)) },
	} {
		read, write, err := os.Pipe()
		require.NoError(t, err)
		told := newNotes(write)
		s := &streams{err: told, json: true, account: account{runs: true}}
		n := newNarrator(s, &job{Verbose: true, Paths: nodePaths{"/l"}})
		for range 2 * mostNotes / len(`{"event":"confirmed"}`) {
			n.tell("confirmed", nil, "confirmed")
		}
		end(s)
		text := make(chan string)
		go func() {
			all, _ := io.ReadAll(read)
			text <- string(all)
		}()
		told.flush()
		require.NoError(t, write.Close())
		lines := strings.Split(strings.TrimSpace(<-text), "\n")
		require.NoError(t, read.Close())
		require.EqualValues(t, 7, parse[map[string]any](t, lines[len(lines)-1])["status"])
		require.Greater(t, len(lines), 100)
	}
}
