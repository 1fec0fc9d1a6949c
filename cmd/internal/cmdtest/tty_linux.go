package cmdtest

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// Terminal is a pseudo-terminal with a session on it, and the screen a person
// would see.
type Terminal struct {
	t      *testing.T
	Keys   *os.File
	Screen buffer
	Cmd    *exec.Cmd
}

// The keys that send signals.
const (
	Interrupt = "\x03"
	Stop      = "\x1a"
)

// OnTerminal runs a command as the leader of a session with a terminal of its
// own.
func OnTerminal(t *testing.T, w *zktest.World, name string, args ...string) *Terminal {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("left out: no pseudo-terminals here:", err)
	}
	// Not by keys.Fd(), which would make reads block for ever, even if the file
	// is closed.
	raw := Must(keys.SyscallConn())
	var number int
	var failed error
	require.NoError(t, raw.Control(func(fd uintptr) {
		if number, failed = unix.IoctlGetInt(int(fd), unix.TIOCGPTN); failed == nil {
			failed = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		}
	}))
	require.NoError(t, failed)
	device := Must(os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0))
	tty := &Terminal{t: t, Keys: keys, Cmd: exec.Command(name, args...)}
	tty.Cmd.Env = append(Environment(), "ZK_SERVERS="+w.ConnectString(), "D="+Coorddemo(t), "T=--session-timeout=20s",
		"PS1=$ ", "ENV=")
	tty.Cmd.Stdin, tty.Cmd.Stdout, tty.Cmd.Stderr = device, device, device
	tty.Cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, tty.Cmd.Start())
	require.NoError(t, device.Close())
	var reader sync.WaitGroup
	reader.Go(func() {
		b := make([]byte, 4096)
		for {
			n, err := keys.Read(b)
			if err != nil { // no process has the terminal open any more
				return
			}
			_, _ = tty.Screen.Write(b[:n])
		}
	})
	t.Cleanup(func() {
		killSession(tty.Cmd.Process.Pid)
		_ = tty.Cmd.Wait()
		_ = keys.Close()
		reader.Wait()
		if t.Failed() {
			t.Logf("the screen:\n%s", tty.Screen.String())
		}
	})
	return tty
}

// OnShell types a line for an interactive shell with a terminal of its own.
func OnShell(t *testing.T, w *zktest.World, line string) *Terminal {
	t.Helper()
	tty := OnTerminal(t, w, "sh", "-i")
	tty.Press(line)
	return tty
}

// killSession kills every process of a session.
func killSession(session int) {
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			if sid, err := unix.Getsid(pid); err == nil && sid == session {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
	}
}

func (tty *Terminal) Press(keys string) {
	tty.t.Helper()
	Must(tty.Keys.WriteString(keys))
}

// Sees waits until the text is on the screen.
func (tty *Terminal) Sees(text string) {
	tty.t.Helper()
	zktest.Eventually(tty.t, Soon, func() bool { return strings.Contains(tty.Screen.String(), text) },
		"the screen shows %q", text)
}

// Answers waits until the text is on the screen, after these keys.
func (tty *Terminal) Answers(keys, text string) {
	tty.t.Helper()
	tty.Press(keys)
	tty.Sees(text)
}

// Modes has a shell print whether its terminal collects lines and shows what is
// typed, in words that the echo of the command line does not have. They are one
// write, which no output of top can interrupt.
const Modes = `; echo done-$?; m=$(stty -a | tr '; ' '\n\n' | grep -x -e icanon -e echo | tr '\n' '-'); echo "${m}mo""des"` + "\n"

// Unchanged waits until the shell has printed them so many times.
func (tty *Terminal) Unchanged(times int) {
	tty.t.Helper()
	zktest.Eventually(tty.t, Soon, func() bool { return strings.Count(tty.Screen.String(), "-modes") == times },
		"the shell tells the modes")
	require.Equal(tty.t, times, strings.Count(tty.Screen.String(), "icanon-echo-modes"), "the modes are what they were")
}

// HandsOver waits until the terminal does not collect lines any more.
func (tty *Terminal) HandsOver(t *testing.T) {
	t.Helper()
	raw := Must(tty.Keys.SyscallConn())
	zktest.Eventually(t, Soon, func() (so bool) {
		require.NoError(t, raw.Control(func(fd uintptr) {
			modes, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
			so = err == nil && modes.Lflag&(unix.ICANON|unix.ECHO) == 0
		}))
		return so
	}, "the terminal hands keys over")
}

// IsTakenAgain has a program that is in the background brought to the
// foreground, and ends it by q.
func (tty *Terminal) IsTakenAgain() {
	tty.t.Helper()
	tty.Press("true" + Modes)
	tty.Unchanged(1)
	tty.Press("fg" + Modes)
	tty.HandsOver(tty.t)
	tty.Press("q")
	tty.Unchanged(2)
}
