package term

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnObjectIsNotDroppedForItsLength(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	told := NewNotes(write)
	s := &Streams{Err: told, JSON: true, Account: Account{Runs: true}}
	s.Tell(map[string]any{"results": strings.Repeat("x", 4*MostNotes)})
	text := make(chan int)
	go func() {
		all, _ := io.ReadAll(read)
		text <- len(all)
	}()
	told.Flush()
	require.NoError(t, write.Close())
	require.Greater(t, <-text, 4*MostNotes)
	require.NoError(t, read.Close())
}

func TestANoteShowsWhatItQuotesAndDoesNotSendItToTheTerminal(t *testing.T) {
	t.Parallel()
	var to bytes.Buffer
	s := &Streams{Err: &to}
	s.Note("begun by %s,\nand not ended: %d %%", "evil\x1b]0;title\a Ünï 日本", 7)
	require.Equal(t, Program+": begun by evil\\x1b]0;title\\a Ünï 日本,\nand not ended: 7 %\n", to.String())
}

func TestALongRemarkLeavesRoomForTheEnd(t *testing.T) {
	t.Parallel()
	n := &Notes{} // nothing is delivered
	n.more = sync.NewCond(&n.mu)
	_, _ = Remarks{n}.Write(make([]byte, MostNotes))
	require.Empty(t, n.pending)
	_, _ = n.Write([]byte("the end"))
	require.Equal(t, "the end", string(n.pending))
}
