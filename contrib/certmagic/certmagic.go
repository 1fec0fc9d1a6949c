// Package certmagic has the locks of certmagic's storage in ZooKeeper, for
// storages that many hosts share: one of them obtains a certificate, the others
// wait for it. After a crash they go on when the session has ended, and not
// when a time stamp has become old.
//
//	locker, err := zkcertmagic.New(client, "/locks/certificates")
//	certmagic.Default.Storage = locker.Storage(storage)
//
// # What certmagic's interfaces cannot give
//
//   - certmagic is not told of the loss of a lock, and goes on. Two hosts may
//     then obtain the same certificate, which costs an order and harms nothing;
//     certmagic expects this, rarely.
//   - Its storages take no token.
package certmagic

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"

	"github.com/caddyserver/certmagic"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Locker has a mutex for each name. It is a [certmagic.Locker] and a
// [certmagic.TryLocker], for storages of your own to embed.
type Locker struct {
	client *coord.Client
	path   string
	mu     sync.Mutex
	held   map[string][]*coord.Hold // the oldest first: what was lost is followed by another hold before it is unlocked
}

// New returns the locker whose mutexes are below path, by the names that
// certmagic gives them, escaped as in a URL. It does no I/O. An invalid path
// fails with [coord.ErrInvalid].
func New(client *coord.Client, path string) (*Locker, error) {
	if err := recipe.Check(client, path); err != nil {
		return nil, err
	}
	return &Locker{client: client, path: path, held: map[string][]*coord.Hold{}}, nil
}

// Storage returns the storage with the locks of l in the place of its own.
func (l *Locker) Storage(storage certmagic.Storage) certmagic.Storage {
	type below struct{ certmagic.Storage } // one level deeper than the locker's methods
	return struct {
		*Locker
		below
	}{l, below{storage}}
}

// Lock waits for the lock until ctx ends.
func (l *Locker) Lock(ctx context.Context, name string) error {
	return l.acquire(ctx, name, (*lock.Mutex).Acquire)
}

// TryLock reports whether it got the lock. While no server can be reached, it
// waits for one until ctx ends.
func (l *Locker) TryLock(ctx context.Context, name string) (bool, error) {
	err := l.acquire(ctx, name, (*lock.Mutex).TryAcquire)
	if errors.Is(err, coord.ErrBusy) {
		return false, nil
	}
	return err == nil, err
}

// Unlock releases the lock. To unlock a lock that was lost is no error.
func (l *Locker) Unlock(ctx context.Context, name string) error {
	l.mu.Lock()
	holds := l.held[name]
	if len(holds) > 1 {
		l.held[name] = holds[1:]
	} else {
		delete(l.held, name)
	}
	l.mu.Unlock()
	if len(holds) == 0 {
		return fmt.Errorf("%w: unlock %q: it is not locked", coord.ErrInvalid, name)
	}
	return holds[0].Release(ctx)
}

func (l *Locker) acquire(
	ctx context.Context, name string, how func(*lock.Mutex, context.Context) (*coord.Hold, error),
) error {
	m, err := lock.New(l.client, l.path+"/"+url.PathEscape(name))
	if err != nil {
		return err
	}
	h, err := how(m, ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[name] = append(l.held[name], h)
	return nil
}
