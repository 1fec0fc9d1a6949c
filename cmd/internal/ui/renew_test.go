package ui

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/coordtest"
)

func TestWhatAnActHasChangedDuringALookIsSeenNext(t *testing.T) {
	coordtest.Virtual(t, func(t *testing.T) {
		looks := 0
		begun, on := make(chan struct{}), make(chan struct{})
		s := open(t, Config{
			Every: time.Hour, Look: func(context.Context) (any, error) {
				looks++
				n := looks
				if n == 1 {
					close(begun)
					<-on
				}
				return n, nil
			},
			Acts: map[string]Act{"break": func(context.Context, Target) error { return nil }},
		})
		first := make(chan struct{})
		go func() {
			defer close(first)
			s.ask(get("/" + token + "/look"))
		}()
		<-begun
		require.Equal(t, http.StatusOK, s.ask(order("break", target)).StatusCode)
		second := make(chan string)
		go func() { second <- string(stateOf(t, s).Seen) }()
		synctest.Wait()
		close(on)
		require.Equal(t, "2", <-second)
		<-first
		require.Equal(t, "2", string(stateOf(t, s).Seen), "once")
	})
}
