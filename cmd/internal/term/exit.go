package term

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// The exit statuses. From 64 on they are those of sysexits.h, where it has a
// fitting one.
const (
	ExitOK          = 0
	ExitFailed      = 1   // a demo went wrong, or a request was refused
	ExitUsage       = 64  // the command line is invalid
	ExitAbsent      = 66  // there is no node at the path
	ExitUnavailable = 69  // no session with the servers
	ExitBusy        = 75  // lock --try: held by another
	ExitLost        = 76  // the lock was lost before the command ended
	ExitTimeout     = 124 // --timeout passed
	ExitOwnFault    = 125 // lock could not do its part, and the command was not started
)

// ExitError is an error with the status to exit with. Without Err nothing is
// printed.
type ExitError struct {
	Code   int
	Err    error
	Fields map[string]any // for the JSON object, besides status and error
}

// StatusOf is the status of an error.
func StatusOf(err error) *ExitError {
	status := &ExitError{Code: ExitFailed, Err: err}
	errors.As(err, &status)
	return status
}

// With returns the error with this field, alone, in Fields.
func (e *ExitError) With(name string, value any) *ExitError {
	return &ExitError{Code: e.Code, Err: e.Err, Fields: map[string]any{name: value}}
}

func (e *ExitError) Error() string {
	if e.Err == nil && e.Code > 128 {
		return Signalled{syscall.Signal(e.Code - 128)}.Error()
	}
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

func ExitWith(code int, format string, args ...any) error {
	return &ExitError{Code: code, Err: fmt.Errorf(format, args...)}
}

// Absent is the error of a verb whose path has no node: a misspelt path must
// not look like good health.
func Absent(path string) error {
	return ExitWith(ExitAbsent, "there is no node %s", Plain(path))
}

func UsageError(format string, args ...any) error { return ExitWith(ExitUsage, format, args...) }

// Silently is an error that exits with a status and prints nothing, or nil for
// ExitOK.
func Silently(code int) error {
	if code == ExitOK {
		return nil
	}
	return &ExitError{Code: code}
}

// Signalled is the cause of an end by a signal.
type Signalled struct{ syscall.Signal }

func (s Signalled) Error() string { return "ended by signal: " + s.String() }

// Interruptible returns a context that SIGHUP, SIGINT or SIGTERM ends, or
// SIGPIPE when nobody reads the output any more. A second signal ends the
// process immediately.
func Interruptible(parent context.Context) (ctx context.Context, stopSignals func()) {
	ctx, end := context.WithCancelCause(parent)
	// A full channel gets no more signals: SIGPIPEs of closed connections must
	// not take the place of the others.
	signals, pipes := make(chan os.Signal, 1), make(chan os.Signal, 1)
	for _, sig := range []os.Signal{syscall.SIGHUP, os.Interrupt, syscall.SIGTERM} {
		if !signal.Ignored(sig) { // as under nohup, or by a shell for its background processes
			signal.Notify(signals, sig)
		}
	}
	if !signal.Ignored(syscall.SIGPIPE) {
		signal.Notify(pipes, syscall.SIGPIPE)
	}
	// A write to a closed pipe must not end the process before it has cleaned
	// up.
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

// BySignal returns the silent status 128+n if signal n has ended ctx, and
// otherwise err.
func BySignal(ctx context.Context, err error) error {
	var sig Signalled
	if errors.As(context.Cause(ctx), &sig) {
		return Silently(128 + int(sig.Signal))
	}
	return err
}
