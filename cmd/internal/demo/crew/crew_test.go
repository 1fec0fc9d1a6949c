//go:build linux || darwin || freebsd || openbsd

package crew

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// The test binary is the parent, in the tests, and its members.
const (
	roleVariable = "CREW_TEST_ROLE"
	memberRole   = "member" // sends its number and ends with its lifeline
	failingRole  = "failing"
	parentRole   = "parent" // has a member, and sends its process id
)

const soon = 20 * time.Second

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case memberRole:
		ctx, _, cancel := Orders(context.Background(), os.Stdin)
		defer cancel()
		Tell(os.Stdout, os.Args[1])
		<-ctx.Done()
		Tell(os.Stdout, "end of "+os.Args[1])
	case failingRole:
		os.Exit(3)
	case parentRole:
		m, err := New[string]().Start(as(memberRole))
		if err != nil {
			panic(err)
		}
		fmt.Println(m.PID())
		select {}
	default:
		goleak.VerifyTestMain(m)
	}
}

func as(role string) func(int) (*exec.Cmd, error) {
	return func(number int) (*exec.Cmd, error) {
		cmd := exec.Command(os.Args[0], strconv.Itoa(number))
		cmd.Env = append(os.Environ(), roleVariable+"="+role)
		return cmd, nil
	}
}

// next is what happens next.
func next(t *testing.T, c *Crew[string]) Event[string] {
	t.Helper()
	return zktest.Receive(t, soon, c.Events(), "what happens next")
}

func TestWhatAMemberReportsIsReadUntilItsEnd(t *testing.T) {
	c := New[string]()
	var heard []string
	for range 3 {
		_, err := c.Start(as(memberRole))
		require.NoError(t, err)
	}
	for range 3 {
		heard = append(heard, *next(t, c).Message)
	}
	require.ElementsMatch(t, []string{"1", "2", "3"}, heard)
	heard = nil
	c.Close(func(m *string) { heard = append(heard, *m) })
	require.ElementsMatch(t, []string{"end of 1", "end of 2", "end of 3"}, heard)
	require.Empty(t, c.Members())
}

func TestAKilledMemberIsNoFailure(t *testing.T) {
	c := New[string]()
	for range mostFailures + 1 {
		m, err := c.Start(as(memberRole))
		require.NoError(t, err)
		require.NotNil(t, next(t, c).Message)
		m.Kill()
		e := next(t, c)
		require.Nil(t, e.Message)
		require.Same(t, m, e.From)
		require.True(t, e.From.Killed())
		require.NoError(t, c.Ended(e))
	}
	require.Empty(t, c.Members())
}

func TestTooManyFailuresAreTheEnd(t *testing.T) {
	c := New[string]()
	for failures := 1; ; failures++ {
		_, err := c.Start(as(failingRole))
		require.NoError(t, err)
		if err = c.Ended(next(t, c)); failures > mostFailures {
			require.ErrorContains(t, err, "exit status 3")
			return
		}
		require.NoError(t, err)
	}
}

func TestMembersEndWhenTheirParentIsKilled(t *testing.T) {
	parent := cmdtest.Must(as(parentRole)(0))
	out := cmdtest.Must(parent.StdoutPipe())
	require.NoError(t, parent.Start())
	line := cmdtest.Must(bufio.NewReader(out).ReadString('\n'))
	pid := cmdtest.Must(strconv.Atoi(strings.TrimSpace(line)))
	require.NoError(t, parent.Process.Kill())
	require.Error(t, parent.Wait())
	cmdtest.RequireGone(t, pid)
}
