package fence_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/fence"
)

func TestCheckAcceptsWhatIsFencedAndNothingElse(t *testing.T) {
	store, boom := fence.Memory(), errors.New("boom")
	raise := func(ctx context.Context, token int64) error { return store.Raise(ctx, "r", token) }
	require.NoError(t, fence.Check(t.Context(), 42, raise))
	require.NoError(t, fence.Check(t.Context(), 42, raise), "again")
	require.ErrorIs(t, fence.Check(t.Context(), 41, raise), fence.ErrStale, "not the newest holder's")
	require.Error(t, fence.Check(t.Context(), 1, raise), "there is no older one")

	for name, broken := range map[string]struct {
		write func(ctx context.Context, token int64) error
		want  error
	}{
		"accepts all":  {func(context.Context, int64) error { return nil }, fence.ErrUnfenced},
		"accepts none": {func(context.Context, int64) error { return boom }, boom},
		"accepts what has no token": {func(_ context.Context, token int64) error {
			if token == 42 {
				return fence.ErrStale
			}
			return nil
		}, fence.ErrUnfenced},
		"fails for another reason": {func(_ context.Context, token int64) error {
			if token < 43 {
				return boom
			}
			return nil
		}, boom},
	} {
		require.ErrorIs(t, fence.Check(t.Context(), 43, broken.write), broken.want, name)
	}

	calls := 0
	err := fence.Check(t.Context(), 43, func(_ context.Context, token int64) error {
		calls++
		switch {
		case calls == 4:
			return boom
		case token < 43:
			return fence.ErrStale
		}
		return nil
	})
	require.ErrorIs(t, err, boom, "a refusal stops the holder, too")
}

func TestARefusedTokenIsToldWhichOneTheResourceHasSeen(t *testing.T) {
	for _, s := range []fence.Store{fence.Memory(), fence.Dir(t.TempDir())} {
		require.NoError(t, s.Raise(t.Context(), "r", 42))
		err := s.Raise(t.Context(), "r", 41)
		require.ErrorIs(t, err, fence.ErrStale)
		require.ErrorContains(t, err, "token 41 after 42")
		require.NotContains(t, err.Error(), "holder", "it may be another ensemble's")
	}
}

func TestATableIsNamedAsSQLWantsIt(t *testing.T) {
	for _, name := range []string{"", "a b", "a;b", `a"`, "1a", "a.b.c", "ä", "a\n"} {
		_, err := fence.NewSQL(fence.PostgreSQL, name)
		require.ErrorContains(t, err, "characters other than", name)
	}
	_, err := fence.NewSQL(0, "fence")
	require.ErrorContains(t, err, "no dialect 0")
	_, err = fence.SQL{}.Statements("r", 42)
	require.Error(t, err)
	require.Error(t, fence.SQL{}.Guard(t.Context(), nil, "r", 42))
}

func TestNamesAndTokensThatAreNoneAreRefused(t *testing.T) {
	table, err := fence.NewSQL(fence.MySQL, "app.fence")
	require.NoError(t, err)
	for _, name := range []string{"", strings.Repeat("x", 256), "a\x00", "\xff"} {
		_, err := table.Statements(name, 42)
		require.ErrorContains(t, err, "UTF-8", name)
	}
	_, err = table.Statements("r", 0)
	require.ErrorContains(t, err, "no fencing token")
}

// The parameters of a statement are in the order of its placeholders.
func TestTheStatementsOfEachDialect(t *testing.T) {
	for d, want := range map[fence.Dialect][]fence.Statement{
		fence.PostgreSQL: {{
			"INSERT INTO app.fence AS f (name, token) VALUES ($1, $2)" +
				" ON CONFLICT (name) DO UPDATE SET token = excluded.token WHERE f.token <= excluded.token",
			[]any{"r", int64(42)},
		}},
		fence.SQLite: {{
			"INSERT INTO app.fence AS f (name, token) VALUES (?, ?)" +
				" ON CONFLICT (name) DO UPDATE SET token = excluded.token WHERE f.token <= excluded.token",
			[]any{"r", int64(42)},
		}},
		fence.MySQL: {
			{
				"INSERT INTO app.fence (name, token, moves) VALUES (?, ?, 0) ON DUPLICATE KEY UPDATE moves = moves",
				[]any{"r", int64(42)},
			},
			{
				"UPDATE app.fence SET token = ?, moves = moves + 1 WHERE name = ? AND token <= ?", []any{int64(42), "r", int64(42)},
			},
		},
	} {
		table, err := fence.NewSQL(d, "app.fence")
		require.NoError(t, err)
		statements, err := table.Statements("r", 42)
		require.NoError(t, err)
		require.Equal(t, want, statements)
	}
}
