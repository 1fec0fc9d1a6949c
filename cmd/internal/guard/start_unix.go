//go:build linux || darwin || freebsd || openbsd

package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/zkcoord/zkcoord/cmd/internal/self"
)

// The statuses of a shell, env or timeout that could not run a command.
const (
	cannotGuard   = 125
	notExecutable = 126
	notFound      = 127
)

// errNotFound is that no directory of PATH has a command.
var errNotFound = errors.New("command not found")

// statusOf is what a shell exits with that could not run a command.
func statusOf(err error) int {
	if errors.Is(err, errNotFound) || errors.Is(err, fs.ErrNotExist) {
		return notFound
	}
	return notExecutable
}

// start runs argv in a process group of its own, in the foreground of the
// terminal if that is given.
func start(argv []string, tty Terminal) (pid int, err error) {
	path, err := find(argv[0])
	if err != nil {
		return 0, err
	}
	sys := &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(sys)
	if tty != (Terminal{}) {
		// The child puts itself in the foreground before it runs the command,
		// which thus never sees itself in the background.
		sys.Foreground, sys.Ctty = true, tty.fd
	}
	attr := &syscall.ProcAttr{Env: os.Environ(), Files: standard(), Sys: sys}
	pid, err = syscall.ForkExec(path, argv, attr)
	if errors.Is(err, syscall.ENOEXEC) {
		// A script without a first line that names its interpreter: execvp and
		// every shell give it to the shell.
		pid, err = syscall.ForkExec("/bin/sh", append([]string{"sh", path}, argv[1:]...), attr)
	}
	if err != nil {
		return 0, &fs.PathError{Op: "run", Path: argv[0], Err: err}
	}
	return pid, nil
}

// find looks name up in PATH as a shell does: a file that may not be executed
// is remembered, but the search goes on.
func find(name string) (string, error) {
	if strings.ContainsRune(name, '/') {
		return name, executable(name)
	}
	var found error = &fs.PathError{Op: "find", Path: name, Err: errNotFound}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if dir == "" || dir == "." {
			path = "./" + name
		}
		err := executable(path)
		if err == nil {
			return path, nil
		}
		if statusOf(err) == notExecutable {
			found = err
		}
	}
	return "", found
}

// Runnable looks for a command of this name. If there is none, the error says
// why, and status is what a shell would exit with. Whether the system can run
// the command shows only when it is started. A foreign command is set-user-ID:
// it will run as another user, and this one cannot signal it.
func Runnable(name string) (status int, foreign bool, err error) {
	path, err := find(name)
	if err != nil {
		return statusOf(err), false, err
	}
	var stat unix.Stat_t
	foreign = unix.Stat(path, &stat) == nil && stat.Mode&unix.S_ISUID != 0 && os.Geteuid() != 0 &&
		int(stat.Uid) != os.Geteuid()
	return 0, foreign, nil
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err = unix.Access(path, unix.X_OK); info.IsDir() {
		err = syscall.EISDIR
	}
	if err != nil {
		return &fs.PathError{Op: "run", Path: path, Err: err}
	}
	return nil
}

// standard are the standard descriptors for a command: an output that was
// closed for this process is closed for the command; a closed input is the null
// device, which does no harm.
func standard() []uintptr {
	files := []uintptr{0, 1, 2}
	for fd := 1; fd <= 2; fd++ {
		if self.Closed(fd) {
			files[fd] = ^uintptr(0)
		}
	}
	return files
}

// Verb is the one argument of the program when it is to be a guard, or the
// guard's reaper.
const Verb = "__guard"

// FarewellVerb is the one argument of the program that a reaper becomes when
// the owner is gone, and the command with all that it had started as well.
const FarewellVerb = "__farewell"

// exitUsage is what the program exits with when a user gives Verb.
const exitUsage = 64

// Guard and reaper live in this function. Before it, Go initialises what this
// package imports, and few of the packages that only the verbs need: metrics,
// HTTP and the command line would take two thirds of a start's time and memory.
func init() {
	if len(os.Args) != 2 || os.Args[1] != Verb {
		return
	}
	if err := stand(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[0], err)
		os.Exit(exitUsage)
	}
	os.Exit(0)
}
