package guard

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestThePagesOfTheProgramsFileAreGivenBack(t *testing.T) {
	var failed unix.Errno
	text(t, func(from, to uintptr, _ int) {
		_, _, failed = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_POPULATE_READ)
	})
	if failed != 0 {
		t.Skip("left out: needs a kernel that reads pages ahead (5.14)")
	}
	resident := func() (all int) {
		text(t, func(_, _ uintptr, kilobytes int) { all += kilobytes })
		return all
	}
	before := resident()
	require.NotZero(t, before)
	shed()
	require.Less(t, resident(), before)
}

// text calls each with the mappings of the program's own text, and how much of
// each is in memory.
func text(t *testing.T, each func(from, to uintptr, kilobytes int)) {
	program, err := os.Executable()
	require.NoError(t, err)
	maps, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	var from, to uintptr
	ours, kilobytes := false, 0
	for line := range strings.Lines(string(maps)) {
		if n, _ := fmt.Sscanf(line, "Rss: %d kB", &kilobytes); n == 1 && ours {
			each(from, to, kilobytes)
		} else if n, _ := fmt.Sscanf(line, "%x-%x ", &from, &to); n == 2 {
			ours = strings.Contains(line, " r-xp ") && strings.Contains(line, program)
		}
	}
}
