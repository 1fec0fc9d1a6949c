package fence_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/fence"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestAWaitForTheLockOfAFileEndsWithItsContext(t *testing.T) {
	p := newPlace(t)
	require.NoError(t, p.write(t.Context(), "first", 41))
	unlock := lockFile(t, p.path+".fence")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, p.write(ctx, "second", 42), context.DeadlineExceeded)
	require.Equal(t, "first", p.content())
	unlock()
	require.NoError(t, p.write(t.Context(), "second", 42))
}

// A call that waits for the lock of a file that is removed meanwhile takes the
// next file of that name: no token is kept where nobody looks.
func TestATokenIsNotWrittenIntoAFileThatWasForgotten(t *testing.T) {
	dir := t.TempDir()
	store, path := fence.Dir(dir), filepath.Join(dir, "r.fence")
	require.NoError(t, store.Raise(t.Context(), "r", 41))
	unlock := lockFile(t, path)
	raised := make(chan error)
	go func() { raised <- store.Raise(t.Context(), "r", 42) }()
	zktest.Eventually(t, time.Minute, func() bool { return opened(t, path, 2) }, "it does not open the file")
	require.NoError(t, os.Remove(path))
	unlock()
	require.NoError(t, <-raised)
	newest, err := store.Newest(t.Context(), "r")
	require.NoError(t, err)
	require.EqualValues(t, 42, newest)
}

// lockFile locks a file as another process does, until unlock.
func lockFile(t *testing.T, path string) (unlock func()) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	require.NoError(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
	return func() { require.NoError(t, f.Close()) }
}

// opened reports whether this process has the file open at least so many times.
func opened(t *testing.T, path string, times int) bool {
	t.Helper()
	open, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	for _, fd := range open {
		if to, err := os.Readlink(fd); err == nil && to == path {
			times--
		}
	}
	return times <= 0
}
