package term

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// Signalled is why something ended when a signal came.
type Signalled struct{ syscall.Signal }

func (s Signalled) Error() string { return "ended by signal: " + s.String() }

// Interruptible returns a context that ends by a signal, also by the one that
// says that the output is not read any more. A second signal ends the process
// at once.
func Interruptible(parent context.Context) (ctx context.Context, calm func()) {
	ctx, end := context.WithCancelCause(parent)
	// A channel that is full gets no more: those that tell of a connection that
	// was closed must not take the place of the others.
	signals, pipes := make(chan os.Signal, 1), make(chan os.Signal, 1)
	for _, sig := range []os.Signal{syscall.SIGHUP, os.Interrupt, syscall.SIGTERM} {
		if !signal.Ignored(sig) { // as under nohup, or by a shell for its background processes
			signal.Notify(signals, sig)
		}
	}
	if !signal.Ignored(syscall.SIGPIPE) {
		signal.Notify(pipes, syscall.SIGPIPE)
	}
	// What is still written must not end the process before it has cleared up.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() {
		for {
			var sig os.Signal
			select {
			case sig = <-signals:
			case sig = <-pipes:
				if !isUnread(os.Stdout) && !isUnread(os.Stderr) {
					continue
				}
			case <-ctx.Done():
				return
			}
			signal.Stop(signals)
			signal.Stop(pipes)
			end(Signalled{sig.(syscall.Signal)})
			return
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		signal.Stop(pipes)
		end(context.Canceled)
	}
}

// BySignal is the silent status of a process that a signal has ended, if that
// is why ctx has, and otherwise err.
func BySignal(ctx context.Context, err error) error {
	var sig Signalled
	if errors.As(context.Cause(ctx), &sig) {
		return Silently(128 + int(sig.Signal))
	}
	return err
}
