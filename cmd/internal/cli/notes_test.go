//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// withStderr runs a lock whose standard error is the given file, with a command
// that tells when it gets TERM.
func withStderr(t *testing.T, w *zktest.World, stderr *os.File, options ...string) *process {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", `exec "$0" "$@" 2>&3`, os.Args[0]}, append(target(w),
		sh(w.Path("l"), `exec 2>/dev/null; trap 'echo term; exit 9' TERM; `+busy, options...)...)...)...)
	cmd.ExtraFiles = []*os.File{stderr}
	p := startAs(t, cmd)
	p.number()
	return p
}

func TestANoteThatIsNotReadDoesNotEndTheProcess(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	p := withStderr(t, w, write)
	require.NoError(t, write.Close())
	require.NoError(t, read.Close())
	require.Equal(t, 0, on(t, w, "revoke", w.Path("l"), "--wait", "--timeout", "30s").exit())
	require.Equal(t, "term", p.line())
	require.Equal(t, 9, p.exit())
}

func TestNothingWaitsForANoteThatIsStuck(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	full := make([]byte, 4096)
	fd := int(write.Fd())
	require.NoError(t, unix.SetNonblock(fd, true))
	for err == nil {
		_, err = unix.Write(fd, full)
	}
	require.NoError(t, unix.SetNonblock(fd, false))
	p := withStderr(t, w, write, "--verbose")
	require.NoError(t, write.Close())
	require.Equal(t, 0, on(t, w, "revoke", w.Path("l"), "--wait", "--timeout", "30s").exit(), "it is released")
	require.Equal(t, "term", p.line())
	require.NoError(t, read.Close())
	require.Equal(t, 9, p.exit())
}

func TestAFullDiskIsNoDelivery(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	putItems(t, w, "item")
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	const script = `cat; echo " $COORD_DELIVERIES"; exit 3`
	p := receive(t, w, script, "--dead", "1")
	if runtime.GOOS != "linux" { // where it needs a disk, nothing is received
		require.Equal(t, exitOwnFault, p.exit())
		t.Setenv("TMPDIR", t.TempDir())
		p = receive(t, w, script, "--dead", "1", "--timeout", "10s")
	}
	require.Equal(t, 3, p.exit(), p.stderr.String())
	require.Equal(t, "item 1", p.output())
}

func TestTheCommandsNameAndArgumentsAreBytes(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	name := filepath.Join(t.TempDir(), "caf\xe9")
	require.NoError(t, os.WriteFile(name, []byte("#!/bin/sh\nprintf %s \"$1\" | od -An -tx1\n"), 0o700))
	p := on(t, w, "lock", w.Path("l"), "--", name, "\xff\xe9")
	require.Equal(t, 0, p.exit())
	require.Equal(t, " ff e9", p.output())
	require.Equal(t, 0, on(t, w, "queue", "put", w.Path("q"), "\xff\xe9").exit())
	require.Equal(t, "\xff\xe9", on(t, w, "queue", "take", w.Path("q")).output())
}

func TestWhenAllThatGuardsIsKilledNothingIsReleased(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("left out: needs Linux's process table")
	}
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, append([]string{"--json"}, sh(w.Path("l"), `echo $PPID; read -r _ _ _ r _ </proc/$PPID/stat; echo $r; exec sleep 1000`)...)...)
	guard, reaper := p.number(), p.number()
	require.NoError(t, unix.Kill(reaper, unix.SIGSTOP))
	require.NoError(t, unix.Kill(guard, unix.SIGKILL))
	require.NoError(t, unix.Kill(reaper, unix.SIGKILL))
	require.Equal(t, exitLost, p.exit())
	names, _, err := w.Admin().Children(w.Path("l"))
	require.NoError(t, err)
	require.Len(t, names, 1, "it was released, though something may be running still")
	require.Contains(t, p.stderr.String(), "may be running still")
	awaitContenders(t, w.Admin(), w.Path("l"), 0)
}

func TestTheSecondTermsCommandHasTheSignalsOfTheFirst(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("left out: needs Linux's /proc")
	}
	w := zktest.New(t, zktest.Embedded)
	p := on(t, w, "elect", "--again", w.Path("e"), "--", "sh", "-c", `grep SigIgn /proc/self/status; echo $PPID; exec sleep 1000`)
	for range 2 {
		require.Zero(t, mask(p.line(), "SigIgn:")&(1<<31-1))
		require.NoError(t, unix.Kill(p.number(), unix.SIGKILL))
	}
	require.Zero(t, mask(p.line(), "SigIgn:")&(1<<31-1))
	p.number()
	p.signal(syscall.SIGTERM)
	require.Equal(t, 143, p.exit())
}
