package faults

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func init() { zktest.RegisterChild("holder", holderMain) }

// holderMain acquires the lock and answers each line "held?" by "true TOKEN" or
// "false CAUSE", the first thing it does with it.
func holderMain(args []string) {
	servers, dir := args[0], args[1]
	ctx := context.Background()
	c, err := coord.Open(ctx, servers, coord.WithSessionTimeout(T), coord.WithTick(tick))
	exitOn(err)
	m, err := lock.New(c, dir)
	exitOn(err)
	h, err := m.Acquire(ctx)
	exitOn(err)
	fmt.Println("token", h.Token(), h.Node())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if err := h.Err(); err != nil {
			fmt.Println("false", err)
			continue
		}
		fmt.Println("true", h.Token())
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// holder starts a process that holds the lock, and returns its token.
func (s scene) holder() (p *zktest.ChildProcess, token int64) {
	s.Helper()
	p = zktest.Child(s, "holder", s.w.ConnectString(), s.dir())
	var node string
	_, err := fmt.Sscan(strings.TrimPrefix(p.Line(patience), "token "), &token, &node)
	require.NoError(s, err)
	return p, token
}

func TestF25AHolderStoppedForTwiceTheTimeoutKnowsAtItsFirstInstruction(t *testing.T) {
	each(t, func(s scene) {
		waiting := s.client()
		p, token := s.holder()
		waiter := s.start(context.Background(), waiting)
		s.awaitNodes(2)
		require.NoError(s, p.Stop())
		stopped := time.Now()
		next := s.granted(waiter)
		require.Greater(s, next.Token(), token, "a resource that saw the new token rejects the old one")
		zktest.Eventually(s, patience, func() bool { return time.Since(stopped) > 2*T }, "time stands still")
		p.Send("held?")
		require.NoError(s, p.Continue())
		answer := p.Line(patience)
		require.True(s, strings.HasPrefix(answer, "false"), answer)
		s.release(next)
	}, zktest.Embedded, zktest.Real)
}

func TestF26AHolderStoppedForHalfTheTimeoutKeepsItsHold(t *testing.T) {
	each(t, func(s scene) {
		p, token := s.holder()
		require.NoError(s, p.Stop())
		stopped := time.Now()
		zktest.Eventually(s, patience, func() bool { return time.Since(stopped) > T/2 }, "time stands still")
		p.Send("held?")
		require.NoError(s, p.Continue())
		require.Equal(s, fmt.Sprint("true ", token), p.Line(patience))
		require.Len(s, s.nodes(), 1)
		p.CloseStdin()
	}, zktest.Embedded, zktest.Real)
}

func TestF28AHolderIsKilled(t *testing.T) {
	each(t, func(s scene) {
		waiting := s.client()
		p, token := s.holder()
		waiter := s.start(context.Background(), waiting)
		s.awaitNodes(2)
		p.Kill()
		killed := time.Now()
		next := s.granted(waiter)
		require.Less(s, time.Since(killed), T+2*tick+500*time.Millisecond)
		require.Greater(s, next.Token(), token)
		s.release(next)
	}, zktest.Embedded, zktest.Real)
}
