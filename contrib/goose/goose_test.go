package goose_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/stretchr/testify/require"

	zkgoose "github.com/zkcoord/zkcoord/contrib/goose"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestMain(m *testing.M) { zktest.Main(m) }

// replica is a provider with three migrations. Each notes that it was made, and
// the second one waits until the test lets it go on.
type replica struct {
	name     string
	client   *coord.Client
	kill     func()
	provider *goose.Provider
	begun    chan *replica // of all replicas: the second migration begins
	end      chan bool     // ends it
}

func (r *replica) up(ctx context.Context) <-chan error {
	return coordtest.Go(func() error { return coordtest.Err(r.provider.Up(ctx)) })
}

func replicas(t *testing.T, server *zkembed.Server, source string, n int) (all []*replica) {
	t.Helper()
	begun := make(chan *replica)
	for i := range n {
		r := &replica{name: fmt.Sprint("replica ", i), begun: begun, end: make(chan bool)}
		r.client, r.kill = coordtest.Mortal(t, server)
		db, err := sql.Open("sqlite3", source)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		locker, err := zkgoose.New(r.client, "/locks/migrations")
		require.NoError(t, err)
		r.provider, err = goose.NewProvider(database.DialectSQLite3, db, nil, goose.WithLocker(locker),
			goose.WithGoMigrations(
				goose.NewGoMigration(1, &goose.GoFunc{RunDB: func(ctx context.Context, db *sql.DB) error {
					_, err := db.ExecContext(ctx, "CREATE TABLE made (migration TEXT, replica TEXT)")
					return err
				}}, nil),
				goose.NewGoMigration(2, &goose.GoFunc{RunDB: func(ctx context.Context, db *sql.DB) error {
					r.begun <- r
					select {
					case <-r.end:
					case <-ctx.Done():
						return ctx.Err()
					}
					return r.note(ctx, db, 2)
				}}, nil),
				goose.NewGoMigration(3,
					&goose.GoFunc{RunDB: func(ctx context.Context, db *sql.DB) error { return r.note(ctx, db, 3) }}, nil),
			))
		require.NoError(t, err)
		all = append(all, r)
	}
	_, err := all[0].provider.GetDBVersion(t.Context()) // makes goose's table
	require.NoError(t, err)
	return all
}

// loseSession returns when the client has another session.
func (r *replica) loseSession(t *testing.T, server *zkembed.Server) {
	t.Helper()
	session := r.client.Info().SessionID
	require.NoError(t, server.ExpireSession(session))
	zktest.Eventually(t, coordtest.Soon,
		func() bool { return r.client.Info().SessionID != session && r.client.Info().Connected }, "no new session")
}

func (r *replica) note(ctx context.Context, db *sql.DB, migration int) error {
	_, err := db.ExecContext(ctx, "INSERT INTO made VALUES (?, ?)", migration, r.name)
	return err
}

func start(t *testing.T) (server *zkembed.Server, source string) {
	t.Helper()
	return coordtest.Embedded(t), "file:" + t.TempDir() + "/db?_busy_timeout=60000&_journal_mode=WAL&_synchronous=OFF"
}

func TestTheNextReplicaGoesOnWithTheMigrationsOfOneThatWasKilled(t *testing.T) {
	server, source := start(t)
	all := replicas(t, server, source, 3)
	ups := map[*replica]<-chan error{}
	dying, die := context.WithCancel(t.Context())
	defer die()
	for _, r := range all {
		ups[r] = r.up(dying)
	}
	killed := zktest.Receive(t, coordtest.Soon, all[0].begun, "a replica migrates")
	killed.kill()
	second := zktest.Receive(t, coordtest.Soon, all[0].begun, "another one goes on")
	require.NotSame(t, killed, second)
	second.end <- true
	for _, r := range all {
		if r != killed {
			require.NoError(t, zktest.Receive(t, coordtest.Soon, ups[r], "the migrations are made"))
		}
	}
	die()
	require.Error(t, zktest.Receive(t, coordtest.Soon, ups[killed], "the migrations end"))

	db, err := sql.Open("sqlite3", source)
	require.NoError(t, err)
	defer db.Close()
	var made string
	require.NoError(t,
		db.QueryRowContext(t.Context(), "SELECT group_concat(migration || ' by ' || replica, ', ') FROM made").Scan(&made))
	require.Equal(t, fmt.Sprintf("2 by %[1]s, 3 by %[1]s", second.name), made)
}

func TestUpFailsWhenTheLockWasLostMeanwhile(t *testing.T) {
	server, source := start(t)
	r := replicas(t, server, source, 1)[0]
	up := r.up(t.Context())
	zktest.Receive(t, coordtest.Soon, r.begun, "it migrates")
	r.loseSession(t, server)
	r.end <- true
	err := zktest.Receive(t, coordtest.Soon, up, "it ends")
	require.ErrorIs(t, err, coord.ErrLost)
	require.ErrorContains(t, err, "unlock /locks/migrations")
	require.NoError(t, zktest.Receive(t, coordtest.Soon, r.up(t.Context()), "again"), "all were made")
}

func TestAWaitForTheLockEndsWithItsContext(t *testing.T) {
	server, source := start(t)
	all := replicas(t, server, source, 2)
	up := all[0].up(t.Context())
	zktest.Receive(t, coordtest.Soon, all[0].begun, "it migrates")
	waiting, giveUp := context.WithCancel(t.Context())
	other := all[1].up(waiting)
	giveUp()
	require.ErrorIs(t, zktest.Receive(t, coordtest.Soon, other, "the wait ends"), context.Canceled)
	all[0].end <- true
	require.NoError(t, zktest.Receive(t, coordtest.Soon, up, "it ends"))

	_, err := zkgoose.New(all[0].client, "relative")
	require.ErrorIs(t, err, coord.ErrInvalid)
}

func TestALockThatWasLostIsUnlockedBeforeTheNextOneIsTaken(t *testing.T) {
	server, source := start(t)
	r := replicas(t, server, source, 1)[0]
	locker, err := zkgoose.New(r.client, "/locks/other")
	require.NoError(t, err)
	require.NoError(t, locker.Lock(t.Context(), nil))
	r.loseSession(t, server)
	require.ErrorIs(t, locker.Lock(coordtest.Within(t, 100*time.Millisecond), nil), context.DeadlineExceeded)
	require.ErrorIs(t, locker.Unlock(t.Context(), nil), coord.ErrLost)
	require.NoError(t, locker.Lock(coordtest.Limited(t), nil))
	require.NoError(t, locker.Unlock(t.Context(), nil))
}

func TestAnUnlockWithoutALockIsRefused(t *testing.T) {
	locker, err := zkgoose.New(coordtest.Open(t, coordtest.Embedded(t).ConnectString()), "/locks/m")
	require.NoError(t, err)
	require.ErrorIs(t, locker.Unlock(t.Context(), nil), coord.ErrInvalid)
	require.NoError(t, locker.Lock(coordtest.Limited(t), nil))
	unlock := func() error { return locker.Unlock(t.Context(), nil) }
	one, other := coordtest.Go(unlock), coordtest.Go(unlock)
	err = recipe.Joined(zktest.Receive(t, coordtest.Soon, one, "it ends"),
		zktest.Receive(t, coordtest.Soon, other, "it ends"))
	require.ErrorIs(t, err, coord.ErrInvalid)
}
