//go:build !(linux || darwin || freebsd || openbsd)

package term

import "os"

// IsClosed reports whether a standard stream is closed.
func IsClosed(f *os.File) bool {
	_, err := f.Stat()
	return err != nil
}

// isUnread cannot tell here, and assumes that nobody reads.
func isUnread(*os.File) bool { return true }
