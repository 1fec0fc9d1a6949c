package zktest

import (
	"os"
	"syscall"
	"testing"
)

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
