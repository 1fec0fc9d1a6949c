package cmdtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// ForAllUsers copies a program, and one by which a user becomes root, as by su,
// to where every user may run them.
func ForAllUsers(t *testing.T, program, su string) (ours, becomesRoot string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("left out: needs root, to make a file set-user-ID")
	}
	dir, err := os.MkdirTemp("", "coorddemo-") // not t.TempDir, which only its user may enter
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	var fs unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &fs))
	if fs.Flags&unix.ST_NOSUID != 0 {
		t.Skip("left out: files here cannot be set-user-ID")
	}
	ours, becomesRoot = filepath.Join(dir, "coorddemo"), filepath.Join(dir, "su")
	zktest.WriteProgram(t, ours, Must(os.ReadFile(program)), 0o755)
	zktest.WriteProgram(t, becomesRoot, Must(os.ReadFile(su)), 0o755|os.ModeSetuid)
	return ours, becomesRoot
}
