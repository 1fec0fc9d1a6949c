package zktest

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// leaksWithin is how long goroutines may take to end after the last test; a
// closed go-zookeeper connection needs up to a second and a half.
const leaksWithin = 10 * time.Second

// Main is the TestMain of every package that uses this one: it runs the tests,
// stops the shared servers, and fails if a goroutine is left. In a child
// process started by Child it runs that child's main function instead.
func Main(m *testing.M) {
	runChild()
	before := goleak.IgnoreCurrent() // of packages that start one in init, such as glog
	HeedSignals()
	code := m.Run()
	host.close(code != 0)
	if code == 0 {
		code = checkGoroutines(before)
	}
	sayLeftOut()
	os.Exit(code)
}

// HeedSignals gives the processes that the tests start the usual signals, also
// when this process was started with some of them ignored: by nohup, or in the
// background of a shell without job control.
func HeedSignals() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s) // a program that is executed gets the default back
		}
	}
}

func checkGoroutines(before goleak.Option) int {
	var leaks error
	if poll(leaksWithin, func() bool { leaks = goleak.Find(before); return leaks == nil }) {
		return 0
	}
	fmt.Fprintln(os.Stderr, "zktest: goroutines left after the last test:", leaks)
	return 1
}

// sayLeftOut says what this run did not cover; go test shows it with -v, or
// when a single package is tested.
func sayLeftOut() {
	for _, b := range []Backend{Embedded, Real} {
		if reason, err := chosen(b); err == nil && reason != "" {
			fmt.Printf("zktest: tests on backend %q: %s\n", b, reason)
		}
	}
}

// WriteProgram writes a file that is to be run. No process is started
// meanwhile: until it runs its own program it would have the file open for
// writing, and a file that is open for writing cannot be run.
func WriteProgram(t testing.TB, name string, content []byte, mode os.FileMode) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(name, content, 0o600)
	syscall.ForkLock.RUnlock()
	if err == nil {
		err = os.Chmod(name, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
}
