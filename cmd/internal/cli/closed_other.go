//go:build !(linux || darwin || freebsd || openbsd)

package cli

import "os"

// isClosed reports whether a standard stream is closed.
func isClosed(f *os.File) bool {
	_, err := f.Stat()
	return err != nil
}

// isUnread is not known here.
func isUnread(*os.File) bool { return true }
