package attend

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/attend"
)

// DefaultSocket is where a host's attendant listens.
const DefaultSocket = "/run/zkcoord/attend.sock"

// Listen makes the socket at path, with this process's user and group and the
// given mode, which says who may connect. It takes the place of the socket of
// an attendant that is gone, and fails if one listens there. The folder must
// exist. A listener does not remove its socket: the next one does.
func Listen(path string, mode fs.FileMode) (*net.UnixListener, error) {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, &fs.PathError{Op: "listen", Path: path, Err: errors.New("there is a file that is no socket")}
	default:
		conn, err := net.DialTimeout("unix", path, time.Second)
		if !errors.Is(err, syscall.ECONNREFUSED) {
			if err == nil {
				_ = conn.Close()
				err = errors.New("an attendant is there already")
			}
			return nil, &fs.PathError{Op: "listen", Path: path, Err: err}
		}
	}
	// It gets its place with its mode.
	made := path + "." + rand.Text()[:8] // not the pid, which processes of other containers have, too
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		err = op.Err // without the name that nobody has chosen
	}
	if err != nil {
		return nil, &fs.PathError{Op: "listen", Path: path, Err: err}
	}
	l.SetUnlinkOnClose(false)
	if err = os.Chmod(made, mode); err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		_, _ = l.Close(), os.Remove(made)
		return nil, err
	}
	return l, nil
}

// Check asks the attendant at path whether it is there, and returns how many
// sessions it attends to. An error that matches [ErrRefused] is its answer.
func Check(ctx context.Context, path string) (sessions int, err error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_ = attend.Write(conn, attend.Message{Check: true}) // one that is full does not read it
	var answer attend.Answer
	switch err := attend.Read(conn, &answer, nil); {
	case ctx.Err() != nil:
		return 0, fmt.Errorf("no answer: %w", context.Cause(ctx))
	case err != nil:
		return 0, fmt.Errorf("no answer: %w", err)
	case answer.Error != "":
		return 0, fmt.Errorf("%w: %s", ErrRefused, answer.Error)
	}
	return answer.Attended, nil
}

// ErrRefused: the attendant is there, and refuses this client.
var ErrRefused = errors.New("the attendant refuses")

// Leave makes the attendant forget the session that it was told of on this
// connection (see coord.WithAttendant). It is for a process that ends while one
// that it leaves behind may still act: the session then expires by itself.
func Leave(connection *os.File) error {
	return attend.Write(connection, attend.Message{Leave: true})
}
