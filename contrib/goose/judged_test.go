package goose_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	gooselock "github.com/pressly/goose/v3/lock"
	"github.com/pressly/goose/v3/lock/locktesting"
	"github.com/stretchr/testify/require"

	zkgoose "github.com/zkcoord/zkcoord/contrib/goose"
	"github.com/zkcoord/zkcoord/coord/recipetest"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// Goose's own tests of what it expects of a locker.
func TestGooseAcceptsOurLocker(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		db, err := sql.Open("sqlite3", "file:"+t.TempDir()+"/db?_busy_timeout=60000")
		require.NoError(t, err)
		defer db.Close()
		newLocker := func(t *testing.T) gooselock.Locker {
			locker, err := zkgoose.New(coordtest.Open(t, w.ConnectString()), w.Path("locks/migrations"))
			require.NoError(t, err)
			return locker
		}
		newProvider := func(t *testing.T) *goose.Provider {
			p, err := goose.NewProvider(database.DialectSQLite3, db, nil, goose.WithLocker(newLocker(t)), goose.WithGoMigrations(
				goose.NewGoMigration(1, nil, nil), goose.NewGoMigration(2, nil, nil), goose.NewGoMigration(3, nil, nil)))
			require.NoError(t, err)
			return p
		}
		_, err = newProvider(t).GetDBVersion(t.Context()) // makes goose's table, for which goose takes no lock
		require.NoError(t, err)
		locktesting.TestProviderLocking(t, newProvider)
		locktesting.TestConcurrentLocking(t, db, newLocker, 2*time.Second)
	})
}

// An adapter is tested as a recipe is.
func TestTheLockerKeepsTheRules(t *testing.T) {
	lock := func(ctx context.Context, l *zkgoose.Locker) error { return l.Lock(ctx, nil) }
	unlock := func(ctx context.Context, l *zkgoose.Locker) error { return l.Unlock(ctx, nil) }
	again := func(ctx context.Context, l *zkgoose.Locker) error { return errors.Join(lock(ctx, l), unlock(ctx, l)) }
	recipetest.Run(t, recipetest.Recipe[*zkgoose.Locker]{
		New: zkgoose.New,
		Calls: []recipetest.Call[*zkgoose.Locker]{
			{Name: "Lock", Op: "acquire", Do: lock, Ready: again, Block: lock, Unblock: unlock, Requests: 2, RoundTrips: 1},
			{Name: "Unlock", Op: "unlock", Do: unlock, Ready: lock, Ends: true, Holds: true, Requests: 1, RoundTrips: 1},
		},
	})
}
