package recipetest

import (
	"context"
	"errors"
	"time"

	"github.com/zkcoord/zkcoord/zkembed"
)

// waiter is a call that waits for others.
type waiter[R any] struct {
	*user[R]
	call   Call[R]
	other  *user[R]
	nodes  int
	ended  <-chan error
	cancel func()
}

// waiting makes a call that has to wait.
func waiting[R any](w *world[R], call Call[R]) *waiter[R] {
	w.Helper()
	path := w.fresh()
	at := &waiter[R]{user: w.user(path), call: call, other: w.user(path)}
	at.other.prepare("Block", call.Block)
	at.nodes = at.user.nodes()
	ctx, cancel := context.WithCancel(w.ctx)
	at.cancel, at.ended = cancel, begin(ctx, at.user, call.Do)
	w.Cleanup(cancel)
	at.stillWaits()
	return at
}

func (at *waiter[R]) stillWaits() {
	at.Helper()
	select {
	case err := <-at.ended:
		at.Fatalf("the call does not wait, but returns %v", err)
	case <-time.After(time.Second):
	}
}

// now returns what the call returns at once.
func (at *waiter[R]) now() error {
	at.Helper()
	begun := time.Now()
	err := at.outcome(at.ended)
	if took := time.Since(begun); took > 0 {
		at.Errorf("the call ends after %v", took)
	}
	return err
}

// unblock lets the call go on.
func (at *waiter[R]) unblock() {
	at.Helper()
	if at.call.Unblock == nil {
		at.other.close()
		return
	}
	at.other.prepare("Unblock", at.call.Unblock)
}

func waitGivenUp[R any](w *world[R], call Call[R]) {
	at := waiting(w, call)
	at.cancel()
	if err := at.now(); !errors.Is(err, context.Canceled) {
		w.Errorf("the call returns %v", err)
	}
	at.left(at.nodes)
	at.end()
}

func waitClosed[R any](w *world[R], call Call[R]) {
	at := waiting(w, call)
	at.close()
	at.refusedAsClosed(call, at.now())
	at.end()
}

// goesOn is the condition that a call outlasts what goes wrong, and succeeds
// when it can.
func goesOn[R any](wrong func(at *waiter[R])) func(w *world[R], call Call[R]) {
	return func(w *world[R], call Call[R]) {
		at := waiting(w, call)
		wrong(at)
		select {
		case err := <-at.ended:
			at.survived(at.call, err)
			if err == nil {
				at.Error("the call has not waited")
			}
		case <-time.After(time.Second):
			at.unblock()
			at.survived(at.call, at.outcome(at.ended))
		}
		at.end()
	}
}

func (at *waiter[R]) end() {
	at.user.close()
	at.other.close()
}

// cutOff is the condition that what a call waits for comes about while its
// client is not connected.
func cutOff[R any](w *world[R], call Call[R]) {
	at := waiting(w, call)
	cut := w.server.Partition(zkembed.Cut{Sessions: []int64{at.client.Info().SessionID}})
	at.unblock()
	time.Sleep(time.Second)
	cut.Heal()
	at.survived(call, at.outcome(at.ended))
	at.end()
}
