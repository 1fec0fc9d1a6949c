package fence

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// suffix ends the name of the file beside another that holds its lock and its
// newest token.
const suffix = ".fence"

// Rename renames a file into the place of another, as [os.Rename] does, but
// only with a token that is not older than the newest one with which that place
// was written; otherwise it fails with [ErrStale], and both files are as
// before. All who write there must do it by Rename.
//
// The token is in a file beside the target, whose name ends in ".fence" and
// which is locked (flock) from the comparison until the rename is done. It is
// on disk before the rename, and the file and its directory are synced: a crash
// leaves the old content or the new one, and never lets an older token in.
// After another error the file may be in place or not; the same holder can try
// again while its file is still there.
//
// It needs a Unix system and a file system whose locks (flock) exclude all
// writers: a local one does, some network file systems do not. Elsewhere it
// fails with [errors.ErrUnsupported].
func Rename(ctx context.Context, from, to string, token int64) error {
	if err := validToken(token); err != nil {
		return err
	}
	if !canLock {
		return failure(to, errors.ErrUnsupported)
	}
	err := syncToDisk(from)
	if err == nil {
		err = underLock(ctx, to+suffix, token, func() error {
			if err := os.Rename(from, to); err != nil {
				return err
			}
			return syncToDisk(filepath.Dir(to))
		})
	}
	return failure(to, err)
}

// Dir returns a store in a directory that exists: a file for each name, which
// is escaped in the file's name as in a URL; if that would be longer than a
// file's name may be, it is a comma and the SHA-256 of the name. It needs what
// [Rename] needs.
func Dir(path string) Store { return dir(path) }

type dir string

// longestFile is how long a file's name may be, in bytes.
const longestFile = 255

func (d dir) file(name string) string {
	file := url.PathEscape(name) // which has no comma
	if len(file)+len(suffix) > longestFile {
		file = fmt.Sprintf(",%x", sha256.Sum256([]byte(name)))
	}
	return filepath.Join(string(d), file+suffix)
}

func (d dir) Raise(ctx context.Context, name string, token int64) error {
	if err := valid(name, token); err != nil {
		return err
	}
	return failure(name, underLock(ctx, d.file(name), token, func() error { return nil }))
}

func (d dir) Newest(ctx context.Context, name string) (newest int64, err error) {
	if err := validName(name); err != nil {
		return 0, err
	}
	f, err := os.Open(d.file(name))
	if err == nil {
		defer f.Close()
		if _, err = lockOf(ctx, f); err == nil {
			newest, err = readToken(f)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	return newest, failure(name, err)
}

func (d dir) Forget(ctx context.Context, name string) error {
	if err := validName(name); err != nil {
		return err
	}
	f, err := openLocked(ctx, d.file(name))
	if err == nil {
		defer f.Close()
		err = os.Remove(f.Name())
	}
	if err == nil {
		err = syncToDisk(string(d))
	}
	return failure(name, err)
}

func failure(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("fence %s: %w", name, err)
}

// underLock calls then with the file locked and its token moved up.
func underLock(ctx context.Context, path string, token int64, then func() error) error {
	f, err := openLocked(ctx, path)
	if err != nil {
		return err
	}
	defer f.Close() // and unlock
	newest, err := readToken(f)
	if err != nil {
		return err
	}
	if token < newest {
		return fmt.Errorf("token %d after %d: %w", token, newest, ErrStale)
	}
	if err := writeToken(f, token); err != nil { // an equal one too: it need not be on disk yet
		return err
	}
	return then()
}

// openLocked opens a file, which it makes if need be, and locks it. While it
// waited for the lock, the file may have been removed: then it opens the next.
func openLocked(ctx context.Context, path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return nil, err
		}
		there, err := lockOf(ctx, f)
		if err == nil && there {
			return f, nil
		}
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
	}
}

// lockOf locks an open file, and reports whether it still has its name.
func lockOf(ctx context.Context, f *os.File) (there bool, err error) {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		locked, err := tryLock(f)
		if err != nil {
			return false, err
		}
		if locked {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	opened, err := f.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(f.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(opened, named), err
}

// digits is how many digits a token has in its file. The number is fixed, so a
// new token replaces the old one in a single write within one sector.
const digits = 20

func readToken(f *os.File) (int64, error) {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, digits+2))
	if err != nil || len(text) == 0 {
		return 0, err
	}
	if len(text) == digits+1 && text[digits] == '\n' {
		if token, err := strconv.ParseInt(string(text[:digits]), 10, 64); err == nil && token > 0 {
			return token, nil
		}
	}
	return 0, fmt.Errorf("%s has no token, but %q: remove it when no former holder is left", f.Name(), text)
}

// writeToken returns when the token and the file's name are on disk.
func writeToken(f *os.File, token int64) error {
	if _, err := f.WriteAt(fmt.Appendf(nil, "%0*d\n", digits, token), 0); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return syncToDisk(filepath.Dir(f.Name()))
}

// syncToDisk returns when a file or a directory is on disk.
func syncToDisk(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
