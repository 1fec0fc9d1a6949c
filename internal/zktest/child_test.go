package zktest

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const patience = 20 * time.Second

func init() {
	RegisterChild("echo", func(args []string) {
		fmt.Println("hello", strings.Join(args, " "))
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			fmt.Println(in.Text())
		}
		os.Exit(7)
	})
	RegisterChild("server", func([]string) {
		s, err := startAlone(nil)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(s.PID(), s.dir)
		select {}
	})
}

func TestAChildTalksWithItsTestLineByLine(t *testing.T) {
	t.Parallel()
	c := Child(t, "echo", "from", "here")
	require.Equal(t, "hello from here", c.Line(patience))
	c.Send("one")
	require.Equal(t, "one", c.Line(patience))
	c.CloseStdin()
	require.Equal(t, 7, c.ExitCode(patience))
	_, open := <-c.Lines()
	require.False(t, open)
}

func TestAStoppedChildIsSilentAndAKilledOneIsGone(t *testing.T) {
	t.Parallel()
	c := Child(t, "echo")
	c.Line(patience)
	require.NoError(t, c.Stop())
	c.Send("asleep")
	require.Empty(t, c.Lines())
	require.NoError(t, c.Continue())
	require.Equal(t, "asleep", c.Line(patience))
	c.Kill()
	require.Equal(t, -1, c.ExitCode(patience))
	require.Error(t, c.Stop())
}

func TestAnUnknownChildIsNamed(t *testing.T) {
	t.Parallel()
	c := Child(t, "nobody")
	require.Equal(t, 64, c.ExitCode(patience))
	require.Contains(t, c.errs.String(), `no child "nobody"`)
}

// A test binary that is killed takes its servers with it, and its files go too.
func TestAKilledTestBinaryLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	Require(t, Real)
	c := Child(t, "server")
	pidText, dir, ok := strings.Cut(c.Line(readyWithin), " ")
	require.True(t, ok, pidText)
	pid, err := strconv.Atoi(pidText)
	require.NoError(t, err)
	require.DirExists(t, dir)

	c.Kill()

	Eventually(t, patience, func() bool { return !exists(fmt.Sprintf("/proc/%d", pid)) }, "the server dies")
	Eventually(t, patience, func() bool { return !exists(dir) }, "its folder is removed")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
