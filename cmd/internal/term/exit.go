package term

import (
	"errors"
	"fmt"
	"syscall"
)

// What the process exits with. Those from 64 on are sysexits.h's where it has
// one.
const (
	ExitOK          = 0
	ExitFailed      = 1   // a demo went wrong, or a request was refused
	ExitUsage       = 64  // the command line is invalid
	ExitUnavailable = 69  // no session with the servers
	ExitBusy        = 75  // lock --try: held by another
	ExitLost        = 76  // the lock was lost before the command ended
	ExitTimeout     = 124 // --timeout passed
	ExitOwnFault    = 125 // lock could not do its part, and the command was not started
)

// ExitError is an error with the status to exit with. Without err it is silent.
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

// With adds a field to the JSON object.
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

func UsageError(format string, args ...any) error { return ExitWith(ExitUsage, format, args...) }

// Silently exits with a status and no message.
func Silently(code int) error {
	if code == ExitOK {
		return nil
	}
	return &ExitError{Code: code}
}
