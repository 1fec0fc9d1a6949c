// Package goose has goose's migrations run by one replica at a time, whatever
// the database is.
//
//	locker, err := zkgoose.New(client, "/locks/migrations")
//	provider, err := goose.NewProvider(database.DialectSQLite3, db, migrations, goose.WithLocker(locker))
//
// All replicas can call Up at their start: one migrates, the others wait, and
// find nothing to do. If it dies, the next one goes on where it stopped.
//
// # What goose's interface cannot give
//
//   - The context of the migrations does not end when the lock is lost. Up
//     fails then, after the last migration. To have it end, leave the Locker
//     out, and call Up inside of [lock.Mutex.Do], with the context that Do
//     passes.
//   - The migrations get no token, so the database cannot refuse a replica that
//     was paused for longer than the session timeout. Where that matters,
//     guard them by package coord/fence in transactions of your own.
//   - goose takes no lock to look for pending migrations or create its table.
package goose

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Locker is a mutex for goose: a lock.Locker of goose's, for any number of
// providers.
type Locker struct {
	mutex *lock.Mutex
	turn  chan struct{} // holds one from Lock to Unlock: a lost hold is not taken for the next one
	held  atomic.Pointer[coord.Hold]
}

// New returns the locker of the mutex at path. It does no I/O. An invalid path
// fails with [coord.ErrInvalid].
func New(client *coord.Client, path string) (*Locker, error) {
	mutex, err := lock.New(client, path)
	if err != nil {
		return nil, err
	}
	return &Locker{mutex: mutex, turn: make(chan struct{}, 1)}, nil
}

// Lock waits for the lock until ctx ends.
func (l *Locker) Lock(ctx context.Context, _ *sql.DB) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return recipe.Ended(ctx)
	}
	held, err := l.mutex.Acquire(ctx)
	if err != nil {
		<-l.turn
		return err
	}
	l.held.Store(held)
	return nil
}

// Unlock releases the lock. If it was lost meanwhile, the error matches
// [coord.ErrLost]: another replica may have migrated at the same time.
func (l *Locker) Unlock(ctx context.Context, _ *sql.DB) error {
	held := l.held.Swap(nil)
	if held == nil {
		return recipe.Failure(l.mutex.Client(), "unlock", l.mutex.Path(),
			fmt.Errorf("%w: it is not locked", coord.ErrInvalid))
	}
	defer func() { <-l.turn }()
	err := held.Release(ctx)
	if lost := held.Err(); errors.Is(lost, coord.ErrLost) {
		err = recipe.Joined(lost, err)
	}
	return recipe.Failure(l.mutex.Client(), "unlock", l.mutex.Path(), err)
}
