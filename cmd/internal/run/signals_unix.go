//go:build linux || darwin || freebsd || openbsd

package run

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

// passedOn are the signals that CMD gets when this process does. Stop and
// continue keys are a matter of their own.
var passedOn = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
}

// stopping are the signals that stop this process while it waits. The runtime
// does not give up its handler of a signal that it was once asked to notify,
// nor one that it ignores: the next wait would lose them.
var stopping = []os.Signal{syscall.SIGTSTP, syscall.SIGTTOU}

// forward delivers passedOn and stopping to signals, except any that were
// ignored from the start: by nohup, or by a shell for its background processes.
// A note that nobody reads any more must not end this process.
func forward(signals chan<- os.Signal) {
	for _, sig := range slices.Concat(passedOn, stopping) {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
}

// untilSignal makes a context that ends at the first signal, also at one that
// has come already; stopSignals leaves the signals to others again. A signal
// that is to stop the process, as SIGTSTP, calls stop.
func untilSignal(
	parent context.Context, signals <-chan os.Signal, stop func(),
) (ctx context.Context, stopSignals func()) {
	ctx, end := context.WithCancelCause(parent)
	// hear reports whether a signal ends the wait. It may stop this process
	// first.
	hear := func(sig os.Signal) bool {
		if slices.Contains(stopping, sig) {
			stop()
		}
		if !slices.Contains(passedOn, sig) {
			return false
		}
		end(term.Signalled{Signal: sig.(syscall.Signal)})
		signal.Reset(passedOn...) // a second one ends the process immediately
		return true
	}
	for len(signals) > 0 {
		if hear(<-signals) {
			return ctx, func() {}
		}
	}
	quiet, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case sig := <-signals:
				if hear(sig) {
					return
				}
			case <-quiet:
				return
			}
		}
	}()
	return ctx, func() {
		close(quiet)
		<-done
	}
}
