//go:build linux || darwin || freebsd || openbsd

package term

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// keyTakes is how long quits waits for a key before it looks for signals again.
const keyTakes = 100 * time.Millisecond

// UntilQuit returns a context that ends when q is typed, if standard input and
// output are terminals: if a pager reads the output, the keys are the pager's.
// Until then the terminal passes on each key immediately, and does not echo it.
// Its modes are restored by restore, a signal, the stop key, and the end of
// parent.
func UntilQuit(parent context.Context, s *Streams) (ctx context.Context, restore func()) {
	ctx, quit := context.WithCancel(parent)
	if !IsTerminal(s.In) || !IsTerminal(s.Out) {
		return ctx, quit
	}
	k := &keyboard{fd: int(s.In.(*os.File).Fd()), signals: make(chan os.Signal, 4)}
	for _, sig := range []os.Signal{syscall.SIGTSTP, syscall.SIGCONT, syscall.SIGQUIT} {
		if !signal.Ignored(sig) {
			signal.Notify(k.signals, sig)
		}
	}
	context.AfterFunc(ctx, k.close)
	go func() {
		defer quit()
		for ctx.Err() == nil && !k.quits() {
		}
	}()
	return ctx, func() {
		quit()
		k.close()
		signal.Stop(k.signals)
	}
}

// keyboard is a terminal whose keys are read one by one.
type keyboard struct {
	fd      int
	signals chan os.Signal

	mu     sync.Mutex
	before *unix.Termios // the modes before take changed them; nil: they are unchanged
	closed bool
}

// foreground reports whether the terminal is this process's to read from.
func (k *keyboard) foreground() bool { return ofForeground(k.fd) }

func foreground(terminal *os.File) bool { return ofForeground(int(terminal.Fd())) }

// ofForeground reports whether this process is in a terminal's foreground.
func ofForeground(fd int) bool {
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// quits waits up to keyTakes for a key, and reports whether it was q. It does
// not read in the background: the kernel would stop the process.
func (k *keyboard) quits() bool {
	k.take()
	select {
	case sig := <-k.signals:
		k.handle(sig)
		return false
	default:
	}
	ready := []unix.PollFd{{Fd: int32(k.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(ready, int(keyTakes.Milliseconds()))
	if err != nil || n == 0 {
		return false
	}
	var typed [64]byte
	n = 0
	if k.foreground() {
		n, err = unix.Read(k.fd, typed[:])
	}
	if err != nil || n <= 0 { // the keys are another process's, or the terminal is gone
		time.Sleep(keyTakes)
		return false
	}
	return slices.Contains(typed[:n], 'q') || slices.Contains(typed[:n], 'Q')
}

// handle restores the modes, and then lets a signal have its default effect.
func (k *keyboard) handle(sig os.Signal) {
	switch sig {
	case syscall.SIGTSTP:
		k.give()
		StopSelf()
	case syscall.SIGCONT: // after a SIGSTOP, which no process sees; the shell may have changed the modes
		k.give()
	case syscall.SIGQUIT:
		k.close()
		signal.Reset(syscall.SIGQUIT)
		_ = syscall.Kill(os.Getpid(), syscall.SIGQUIT)
	}
}

// take changes the modes, unless that is done or the terminal is another's.
func (k *keyboard) take() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || k.before != nil || !k.foreground() {
		return
	}
	before, err := unix.IoctlGetTermios(k.fd, getModes)
	if err != nil {
		return
	}
	modes := *before
	modes.Lflag &^= unix.ICANON | unix.ECHO
	modes.Cc[unix.VMIN], modes.Cc[unix.VTIME] = 0, 0
	if unix.IoctlSetTermios(k.fd, setModes, &modes) == nil {
		k.before = before
	}
}

// give restores the modes, unless the terminal is another process's by now,
// with modes of its own.
func (k *keyboard) give() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.before != nil && k.foreground() {
		_ = unix.IoctlSetTermios(k.fd, setModes, k.before)
	}
	k.before = nil
}

// close restores the modes for good.
func (k *keyboard) close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.give()
}
