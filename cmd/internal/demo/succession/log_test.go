package succession

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheLogTellsFormerLeadersThatStillWrite(t *testing.T) {
	for text, want := range map[string]Log{
		"":                                 {},
		"8 1 1\n8 1 2\n9 2 1\n":            {Entries: 3, Terms: 2},
		"8 1 1\n9 2 1\n8 1 2\n9 2 2\n":     {Entries: 4, Terms: 2, Overlaps: 1},
		"9 2 1\n8 1 1\n8 1 2\n12 3 1\n":    {Entries: 4, Terms: 2, Overlaps: 2},
		"0 1 1\n9223372036854775807 1 1\n": {Entries: 2, Terms: 2},
	} {
		path := filepath.Join(t.TempDir(), "log")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		log, err := ReadLog(path)
		require.NoError(t, err)
		require.Equal(t, want, log, "%q", text)
	}
	path := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(path, []byte("8 1 1\n8 1"), 0o600))
	_, err := ReadLog(path)
	require.ErrorContains(t, err, "entry 2")
}
