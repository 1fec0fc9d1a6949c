package cli

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
)

// A look may return when the wait is over: nobody waits for it.
func TestALookThatReturnsLateTellsNothing(t *testing.T) {
	var text strings.Builder
	n := newNarrator(&streams{err: &text}, &job{Verbose: true, Paths: nodePaths{"/l"}})
	looking, late, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	waiting, over := n.wait(context.Background())
	go func() {
		defer close(done)
		n.accompany(waiting, nil, func(context.Context, *coord.Client, names) (situation, error) {
			close(looking)
			<-late
			return situation{text: "held by another", key: "x"}, nil
		})
	}()
	n.joined <- struct{}{}
	<-looking
	over()
	n.tell("holds", nil, "holds it")
	close(late)
	<-done
	require.Equal(t, program+": holds it\n", text.String())
}
