package run

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
)

// A look may return when the wait is over: nobody waits for it.
func TestALookThatReturnsLateTellsNothing(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	n := newNarrator(&term.Streams{Err: &text}, &job{Verbose: true, Paths: conn.NodePaths{"/l"}})
	looking, late, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	waiting, over := n.wait(context.Background())
	go func() {
		defer close(done)
		n.accompany(waiting, nil, func(context.Context, *coord.Client, look.Names) (look.Situation, error) {
			close(looking)
			<-late
			return look.Situation{Text: "held by another", Key: "x"}, nil
		})
	}()
	n.joined <- struct{}{}
	<-looking
	over()
	n.tell("holds", nil, "holds it")
	close(late)
	<-done
	require.Equal(t, term.Program+": holds it\n", text.String())
}
