package ui

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/coordtest"
)

func stateOf(t *testing.T, s site) (told state) {
	t.Helper()
	answer := s.ask(get("/" + token + "/look"))
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&told))
	return told
}

func TestViewersShareOneLookAtATimeWhileOneAsks(t *testing.T) {
	coordtest.Virtual(t, func(t *testing.T) {
		var mu sync.Mutex
		looks, under := 0, 0
		s := open(t, Config{Every: 2 * time.Second, Look: func(context.Context) (any, error) {
			mu.Lock()
			looks++
			under++
			if under > 1 {
				t.Error("two looks at a time")
			}
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			under--
			return looks, nil
		}})
		var viewers sync.WaitGroup
		for i := range 20 {
			viewers.Go(func() {
				time.Sleep(time.Duration(i) * 37 * time.Millisecond)
				for range 60 {
					require.NotEqual(t, "null", string(stateOf(t, s).Seen))
					time.Sleep(500 * time.Millisecond)
				}
			})
		}
		began := time.Now()
		viewers.Wait()
		most := int(time.Since(began)/(3*time.Second)) + 1 // one takes a second, the next comes 2 s later
		require.LessOrEqual(t, looks, most)
		require.GreaterOrEqual(t, looks, most-2)

		synctest.Wait()
		before := looks
		time.Sleep(time.Hour)
		require.Equal(t, before, looks, "nobody asks")
		stateOf(t, s)
		require.Equal(t, before+1, looks)
	})
}

func TestOldDataAreToldToBeOld(t *testing.T) {
	coordtest.Virtual(t, func(t *testing.T) {
		var fails error
		var hangs atomic.Bool
		s := open(t, Config{Every: time.Second, Look: func(ctx context.Context) (any, error) {
			if hangs.Load() {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return "seen", fails
		}})
		told := stateOf(t, s)
		require.Equal(t, state{Seen: json.RawMessage(`"seen"`), Every: 1, Acts: []string{}}, told)

		time.Sleep(3 * time.Second)
		fails = errors.New("no server answers")
		told = stateOf(t, s)
		require.Equal(t, state{Seen: json.RawMessage(`"seen"`), Age: 3, Old: true, Error: "no server answers", Every: 1, Acts: []string{}}, told)

		time.Sleep(time.Second)
		fails = nil
		require.False(t, stateOf(t, s).Old)

		hangs.Store(true)
		time.Sleep(time.Second)
		began := time.Now()
		told = stateOf(t, s)
		require.Equal(t, patience, time.Since(began), "a viewer is answered while the look hangs")
		require.False(t, told.Old)
		told = stateOf(t, s)
		require.True(t, told.Old, "it takes too long")
		require.Empty(t, told.Error)
		require.JSONEq(t, `"seen"`, string(told.Seen))
		time.Sleep(10 * time.Second)
		hangs.Store(false)
		told = stateOf(t, s)
		require.False(t, told.Old, "it was given up, and another has begun")
		require.Zero(t, told.Age)
	})
}

func TestNothingSeenYetIsTold(t *testing.T) {
	coordtest.Virtual(t, func(t *testing.T) {
		s := open(t, Config{Look: func(ctx context.Context) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		told := stateOf(t, s)
		require.Equal(t, "null", string(told.Seen))
		time.Sleep(10 * time.Second)
		require.Equal(t, "null", string(stateOf(t, s).Seen))
	})
}

func TestWhatAnActHasChangedIsSeenNext(t *testing.T) {
	coordtest.Virtual(t, func(t *testing.T) {
		looks := 0
		s := open(t, Config{
			Every: time.Hour, Look: func(context.Context) (any, error) { looks++; return looks, nil },
			Acts: map[string]Act{"break": func(context.Context, Target) error { return nil }},
		})
		require.Equal(t, "1", string(stateOf(t, s).Seen))
		require.Equal(t, "1", string(stateOf(t, s).Seen))
		require.Equal(t, http.StatusOK, s.ask(order("break", target)).StatusCode)
		require.Equal(t, "2", string(stateOf(t, s).Seen))
	})
}

func TestAnActIsBounded(t *testing.T) {
	coordtest.Virtual(t, func(t *testing.T) {
		s := open(t, Config{Acts: map[string]Act{"break": func(ctx context.Context, _ Target) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}}})
		began := time.Now()
		require.Equal(t, http.StatusGatewayTimeout, s.ask(order("break", target)).StatusCode)
		require.Equal(t, 10*time.Second, time.Since(began))
	})
}

func TestServingEndsWithItsContextAlsoDuringALook(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	looking := make(chan struct{})
	served := make(chan error, 1)
	go func() {
		served <- Serve(ctx, listener, Config{Token: token, Every: time.Second, Within: time.Hour, Look: func(ctx context.Context) (any, error) {
			close(looking)
			<-ctx.Done()
			return nil, ctx.Err()
		}})
	}()
	go func() { // its answer does not matter
		if answer, err := http.Get("http://" + listener.Addr().String() + "/" + token + "/look"); err == nil {
			_ = answer.Body.Close()
		}
	}()
	<-looking
	cancel()
	require.NoError(t, <-served)
	_, err = listener.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

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
