package fencetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/fence"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
)

// begin begins a transaction that ends with the test at the latest.
func (s scene) begin() *sql.Tx {
	s.Helper()
	tx, err := s.db.BeginTx(s.Context(), nil)
	require.NoError(s, err)
	s.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// log writes what the fence protects.
func (s scene) log(ctx context.Context, tx *sql.Tx, name string, token int64) error {
	_, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO %slog (name, token) VALUES ('%s', %d)", s.tables, name, token))
	return err
}

// write writes under the fence.
func (s scene) write(ctx context.Context, name string, token int64) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := s.fence.Guard(ctx, tx, name, token); err != nil {
		return err
	}
	if err := s.log(ctx, tx, name, token); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// written is the tokens that wrote a name, in order.
func (s scene) written(name string) (tokens []int64) {
	s.Helper()
	rows, err := s.db.QueryContext(s.Context(),
		fmt.Sprintf("SELECT token FROM %slog WHERE name = '%s' ORDER BY id", s.tables, name))
	require.NoError(s, err)
	for rows.Next() {
		var token int64
		require.NoError(s, rows.Scan(&token))
		tokens = append(tokens, token)
	}
	require.NoError(s, rows.Err())
	require.NoError(s, rows.Close())
	return tokens
}

func TestATransactionIsGuardedByTheTokenOfItsHolder(t *testing.T) {
	each(t, func(s scene) {
		require.NoError(s, s.write(s.Context(), "r", 41))
		require.NoError(s, s.write(s.Context(), "r", 41))
		require.NoError(s, s.write(s.Context(), "r", 42))
		require.ErrorIs(s, s.write(s.Context(), "r", 41), fence.ErrStale)
		require.Equal(s, []int64{41, 41, 42}, s.written("r"))
		require.NoError(s, s.write(s.Context(), "R", 41), "another name")
		require.NoError(s, s.write(s.Context(), "r ", 41), "another name")
		require.NoError(s, s.write(s.Context(), "r", 1<<62), "a large token")
		require.NoError(s,
			fence.Check(s.Context(), 42, func(ctx context.Context, token int64) error { return s.write(ctx, "probe", token) }))
	})
}

// Whoever overlooks the error of Guard writes nothing.
func TestARefusedTransactionIsRolledBack(t *testing.T) {
	each(t, func(s scene) {
		require.NoError(s, s.write(s.Context(), "r", 42))
		for want, guard := range map[error]func(tx *sql.Tx) error{
			fence.ErrStale:   func(tx *sql.Tx) error { return s.fence.Guard(s.Context(), tx, "r", 41) },
			nil:              func(tx *sql.Tx) error { return s.fence.Guard(s.Context(), tx, "r", 0) },
			context.Canceled: func(tx *sql.Tx) error { return s.fence.Guard(ended(s), tx, "r", 43) },
		} {
			tx := s.begin()
			require.NoError(s, s.log(s.Context(), tx, "r", 7))
			err := guard(tx)
			require.Error(s, err)
			if want != nil {
				require.ErrorIs(s, err, want)
			}
			require.Error(s, s.log(s.Context(), tx, "r", 8))
			require.ErrorIs(s, tx.Commit(), sql.ErrTxDone)
		}
		require.Equal(s, []int64{42}, s.written("r"))

		absent, err := fence.NewSQL(fence.SQLite, "absent")
		require.NoError(s, err)
		tx := s.begin()
		require.Error(s, absent.Guard(s.Context(), tx, "r", 43), "there is no table")
		require.ErrorIs(s, tx.Commit(), sql.ErrTxDone)
	})
}

func ended(s scene) context.Context {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	return ctx
}

// The check and the write are one step: who was let in is waited for.
func TestANewerTransactionWaitsForTheOlderOne(t *testing.T) {
	each(t, func(s scene) {
		require.NoError(s, s.write(s.Context(), "r", 40))
		older := s.begin()
		require.NoError(s, s.fence.Guard(s.Context(), older, "r", 41))
		impatient, cancel := context.WithTimeout(s.Context(), 100*time.Millisecond)
		defer cancel()
		newer := make(chan error)
		go func() { newer <- s.write(impatient, "r", 42) }()
		<-impatient.Done()
		require.NoError(s, s.log(s.Context(), older, "r", 41))
		require.NoError(s, older.Commit())
		err := <-newer // the wait for a lock of SQLite's does not end with a context
		require.NotErrorIs(s, err, fence.ErrStale)
		require.NoError(s, s.write(s.Context(), "r", 42))
		require.IsNonDecreasing(s, s.written("r"))
		require.Equal(s, []int64{40, 41}, s.written("r")[:2])
	})
}

// A thousand times a holder is paused in the middle of its work for so long
// that the servers end its session: ten times, with a hundred holds. It wakes
// when another holds, and goes on with what it was about to write, while others
// write.
func TestAPausedHolderWritesNothingInAThousandRounds(t *testing.T) {
	each(t, func(s scene) {
		s.db.SetMaxOpenConns(4)
		server := coordtest.Embedded(s)
		var clients [2]*coord.Client
		for i := range clients {
			clients[i] = coordtest.Open(s, server.ConnectString(), coord.WithSessionTimeout(time.Minute))
		}
		const names, pauses = 100, 10
		var holds [names]*coord.Hold
		var refused atomic.Int64
		for pause := range pauses + 1 {
			if pause > 0 {
				require.NoError(s, server.ExpireSession(holds[0].Session()))
			}
			var all sync.WaitGroup
			for n := range names {
				all.Go(func() {
					name := fmt.Sprint("r", n)
					hold, err := s.takeOver(clients[pause%2], name, holds[n])
					if holds[n] != nil && errors.Is(err, fence.ErrStale) {
						refused.Add(1)
					} else if err != nil {
						s.Error(err)
					}
					holds[n] = hold
				})
			}
			all.Wait()
			require.False(s, s.Failed())
		}
		require.EqualValues(s, names*pauses, refused.Load())
		writes, stale := 0, 0
		for n := range names {
			tokens := s.written(fmt.Sprint("r", n))
			writes += len(tokens)
			for i := 1; i < len(tokens); i++ {
				if tokens[i] < tokens[i-1] {
					stale++
				}
			}
		}
		require.Zero(s, stale)
		s.Logf("%d rounds: %d writes, %d refused after the next holder's, %d stale", names*pauses, writes,
			refused.Load(), stale)
	})
}

// takeOver acquires the lock of a name and writes, and has the former holder
// write meanwhile and afterwards. It returns the new hold, and how the
// last of these writes ended.
func (s scene) takeOver(c *coord.Client, name string, former *coord.Hold) (*coord.Hold, error) {
	mutex, err := lock.New(c, "/locks/"+name)
	if err != nil {
		return nil, err
	}
	hold, err := mutex.Acquire(s.Context())
	if err != nil {
		return nil, err
	}
	if former == nil {
		return hold, s.write(s.Context(), name, hold.Token())
	}
	<-former.Done()
	meanwhile := make(chan error)
	go func() { meanwhile <- s.write(s.Context(), name, former.Token()) }()
	err = s.write(s.Context(), name, hold.Token())
	if late := <-meanwhile; err != nil || (late != nil && !errors.Is(late, fence.ErrStale)) {
		return hold, fmt.Errorf("the new holder's write: %v, the former one's: %v", err, late)
	}
	return hold, s.write(s.Context(), name, former.Token())
}

// stores are the stores of the library.
func stores(t *testing.T, f func(t *testing.T, store fence.Store)) {
	t.Run("memory", func(t *testing.T) { f(t, fence.Memory()) })
	t.Run("dir", func(t *testing.T) { f(t, fence.Dir(t.TempDir())) })
	each(t, func(s scene) { f(s.T, s.fence.Store(s.db)) })
}

func TestAStoreAcceptsNoOlderToken(t *testing.T) {
	stores(t, func(t *testing.T, store fence.Store) {
		newest := func(name string) int64 {
			token, err := store.Newest(t.Context(), name)
			require.NoError(t, err)
			return token
		}
		for _, name := range []string{"r", "/a/b?c=%2F", "..", "naïve"} {
			require.Zero(t, newest(name))
			require.NoError(t, store.Raise(t.Context(), name, 41))
			require.NoError(t, store.Raise(t.Context(), name, 41))
			require.NoError(t, store.Raise(t.Context(), name, 42))
			stale := store.Raise(t.Context(), name, 41)
			require.ErrorIs(t, stale, fence.ErrStale)
			require.ErrorContains(t, stale, "token 41 after 42")
			require.EqualValues(t, 42, newest(name))
			require.NoError(t, store.Forget(t.Context(), name))
			require.NoError(t, store.Forget(t.Context(), name), "again")
			require.Zero(t, newest(name))
			require.NoError(t, store.Raise(t.Context(), name, 1))
		}
		for name, token := range map[string]int64{"": 42, "\xff": 42, "r": 0} {
			require.Error(t, store.Raise(t.Context(), name, token))
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		require.Error(t, store.Raise(over, "r", 43))
		require.EqualValues(t, 1, newest("r"))
	})
}

// writeByMany has 16 tokens write, in any order, of which older ones may be
// refused.
func writeByMany(t *testing.T, write func(token int64) error) {
	var all sync.WaitGroup
	for i := range int64(8) {
		all.Go(func() {
			for _, token := range []int64{1 + i, 16 - i} {
				if err := write(token); err != nil && !errors.Is(err, fence.ErrStale) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestTheNewestOfManyTokensStays(t *testing.T) {
	stores(t, func(t *testing.T, store fence.Store) {
		writeByMany(t, func(token int64) error { return store.Raise(t.Context(), "r", token) })
		newest, err := store.Newest(t.Context(), "r")
		require.NoError(t, err)
		require.EqualValues(t, 16, newest)
	})
}
