package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUsersOfSASLAreALineEach(t *testing.T) {
	file := filepath.Join(t.TempDir(), "users")
	read := func(text string) (map[string]string, error) {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return saslUsers(file)
	}
	users, err := read("bob:open: sesame\r\n\nann:\n")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"bob": "open: sesame", "ann": ""}, users)
	for _, text := range []string{"", "\n", "bob\n", ":secret\n"} {
		_, err := read(text)
		require.ErrorContains(t, err, "--sasl-users", text)
		require.NotContains(t, err.Error(), "secret")
	}
	_, err = saslUsers(filepath.Join(t.TempDir(), "none"))
	require.ErrorContains(t, err, "--sasl-users")
}
