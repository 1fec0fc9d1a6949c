package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
)

// Dialect is whose SQL a database speaks.
type Dialect int

// The dialects. MariaDB speaks MySQL's.
const (
	PostgreSQL Dialect = iota + 1 // 9.5 and later
	MySQL                         // InnoDB, 5.6 and later
	SQLite                        // 3.24 and later
)

// SQL is a table of names and tokens in a database. Make one with [NewSQL].
type SQL struct {
	table  string
	schema string
	newest string
	forget string

	// raise are the statements that move a token up. Their arguments are
	// (name, token) and (token, name, token). The last changes a row unless
	// the token is older.
	raise []string
}

// Statement is one statement with the values of its parameters.
type Statement struct {
	Query string
	Args  []any
}

var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$`)

// NewSQL describes a table in a database of that dialect; "schema.table" is
// possible. It does no I/O: the table is made by [SQL.Schema].
func NewSQL(d Dialect, table string) (SQL, error) {
	if !tableName.MatchString(table) {
		return SQL{}, fmt.Errorf("fence: the table's name %q has characters other than letters, digits and _", table)
	}
	first, second, number := "?", "?", "INTEGER"
	if d == PostgreSQL {
		first, second, number = "$1", "$2", "BIGINT"
	}
	s := SQL{
		table:  table,
		newest: `SELECT token FROM ` + table + ` WHERE name = ` + first,
		forget: `DELETE FROM ` + table + ` WHERE name = ` + first,
	}
	switch d {
	case PostgreSQL, SQLite:
		s.schema = `CREATE TABLE IF NOT EXISTS ` + table + ` (name TEXT NOT NULL PRIMARY KEY, token ` + number + ` NOT NULL)`
		s.raise = []string{`INSERT INTO ` + table + ` AS f (name, token) VALUES (` + first + `, ` + second + `)` +
			` ON CONFLICT (name) DO UPDATE SET token = excluded.token WHERE f.token <= excluded.token`}
	case MySQL:
		// An upsert does not tell an equal token from an older one: neither
		// changes the row. The count of moves makes an accepted token a change.
		s.schema = `CREATE TABLE IF NOT EXISTS ` + table +
			` (name VARBINARY(255) NOT NULL PRIMARY KEY, token BIGINT NOT NULL, moves BIGINT NOT NULL) ENGINE=InnoDB`
		s.raise = []string{
			`INSERT INTO ` + table + ` (name, token, moves) VALUES (?, ?, 0) ON DUPLICATE KEY UPDATE moves = moves`,
			`UPDATE ` + table + ` SET token = ?, moves = moves + 1 WHERE name = ? AND token <= ?`,
		}
	default:
		return SQL{}, fmt.Errorf("fence: there is no dialect %d: take PostgreSQL, MySQL or SQLite", d)
	}
	return s, nil
}

// Schema returns the statement that makes the table unless it exists.
func (s SQL) Schema() string { return s.schema }

// Statements returns what [SQL.Guard] carries out, for programs that do not use
// database/sql. Carry them out in order, in the transaction that writes. Roll
// back if one fails, or if the last affects no row (then the token is stale).
func (s SQL) Statements(name string, token int64) ([]Statement, error) {
	if err := valid(name, token); err != nil {
		return nil, err
	}
	if s.raise == nil {
		return nil, errors.New("fence: an SQL that NewSQL did not make")
	}
	args := [][]any{{name, token}, {token, name, token}}
	all := make([]Statement, len(s.raise))
	for i, query := range s.raise {
		all[i] = Statement{query, args[i]}
	}
	return all, nil
}

// Guard admits the holder's transaction: it moves the name's token up to this
// one, or fails with [ErrStale] if the newest one is larger. If it fails, for
// whatever reason, the transaction is rolled back: nothing more can be written
// or committed by it, even if the error is overlooked.
//
// Guard locks the name's row until the transaction ends. A transaction with a
// newer token waits for this one, and one with an older token fails after it:
// writes of a name take effect in the order of their tokens, at every level of
// isolation. Call it first, so that the transaction reads what its predecessor
// has written. Where isolation is stricter than "read committed", the database
// may abort one of two transactions that meet; the error is not ErrStale, and
// the holder can try again.
func (s SQL) Guard(ctx context.Context, tx *sql.Tx, name string, token int64) error {
	if tx == nil {
		return errors.New("fence: Guard without a transaction")
	}
	err := s.guard(ctx, tx, name, token)
	if err != nil {
		_ = tx.Rollback() // if that fails, the connection is given up, and the server rolls back
	}
	return err
}

func (s SQL) guard(ctx context.Context, tx *sql.Tx, name string, token int64) error {
	all, err := s.Statements(name, token)
	if err != nil {
		return err
	}
	var moved int64
	for _, statement := range all {
		result, err := tx.ExecContext(ctx, statement.Query, statement.Args...)
		if err == nil {
			moved, err = result.RowsAffected()
		}
		if err != nil {
			return fmt.Errorf("fence %s: token %d in table %s: %w", name, token, s.table, err)
		}
	}
	if moved < 1 {
		return s.stale(ctx, tx, name, token)
	}
	return nil
}

// stale says which token is newer, as far as the transaction can see it: its
// snapshot may be older.
func (s SQL) stale(ctx context.Context, tx *sql.Tx, name string, token int64) error {
	after, newest := "", int64(0)
	if tx.QueryRowContext(ctx, s.newest, name).Scan(&newest) == nil && newest > token {
		after = fmt.Sprintf(" after %d", newest)
	}
	return fmt.Errorf("fence %s: token %d%s in table %s: %w", name, token, after, s.table, ErrStale)
}

// Store returns the table as a store, with a transaction for each call. It can
// share the table with [SQL.Guard].
func (s SQL) Store(db *sql.DB) Store { return table{s, db} }

type table struct {
	SQL
	db *sql.DB
}

func (t table) Raise(ctx context.Context, name string, token int64) error {
	tx, err := t.db.BeginTx(ctx, nil)
	if err != nil {
		return t.failure(name, err)
	}
	if err := t.Guard(ctx, tx, name, token); err != nil {
		return err
	}
	return t.failure(name, tx.Commit())
}

func (t table) Newest(ctx context.Context, name string) (newest int64, err error) {
	err = t.db.QueryRowContext(ctx, t.newest, name).Scan(&newest)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return newest, t.failure(name, err)
}

func (t table) Forget(ctx context.Context, name string) error {
	_, err := t.db.ExecContext(ctx, t.forget, name)
	return t.failure(name, err)
}

func (t table) failure(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("fence %s: table %s: %w", name, t.table, err)
}
