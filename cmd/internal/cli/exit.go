package cli

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/zkcoord/zkcoord/coord"
)

// What the process exits with. Those from 64 on are sysexits.h's where it has
// one.
const (
	exitOK          = 0
	exitFailed      = 1   // a demo went wrong, or a request was refused
	exitUsage       = 64  // the command line cannot be right
	exitUnavailable = 69  // no session with the servers
	exitBusy        = 75  // lock --try: held by another
	exitLost        = 76  // the lock was lost before the command ended
	exitTimeout     = 124 // --timeout passed
	exitOwnFault    = 125 // lock could not do its part, and the command was not started
)

// exitError is an error with the status to exit with. Without err it is silent.
type exitError struct {
	code   int
	err    error
	fields map[string]any // for the JSON object, beside status and error
}

// statusOf is the status of an error.
func statusOf(err error) *exitError {
	status := &exitError{code: exitFailed, err: err}
	errors.As(err, &status)
	return status
}

// with adds a field to the JSON object.
func (e *exitError) with(name string, value any) *exitError {
	return &exitError{code: e.code, err: e.err, fields: map[string]any{name: value}}
}

func (e *exitError) Error() string {
	if e.err == nil && e.code > 128 {
		return signalled{syscall.Signal(e.code - 128)}.Error()
	}
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func exitWith(code int, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...)}
}

func usageError(format string, args ...any) error { return exitWith(exitUsage, format, args...) }

// silently exits with a status and no message.
func silently(code int) error {
	if code == exitOK {
		return nil
	}
	return &exitError{code: code}
}

// orUsage makes an error about an impossible argument one of usage.
func orUsage(err error, code int) error {
	if errors.Is(err, coord.ErrInvalid) {
		code = exitUsage
	}
	return &exitError{code: code, err: err}
}
