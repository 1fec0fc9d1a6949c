//go:build linux || darwin || freebsd || openbsd

package term

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func written(t *testing.T, table Table, columns int) []string {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, table.Write(Page{&text, columns}))
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

func TestATableFitsInItsColumns(t *testing.T) {
	t.Parallel()
	table := Table{Heads: []string{"PATH", "OWNER", "AGE"}, About: "ODD"}
	table.Add("two dialects, which do not see each other; 1 asked to give up", "/locks/of/the/department/for/reports",
		`"zkcoord 計算機 4711"`, "12.5s")
	table.Add("", "/l", `"b"`, "3h0m0s")
	require.Equal(t, []string{
		`PATH                                  OWNER                  AGE     ODD`,
		`/locks/of/the/department/for/reports  "zkcoord 計算機 4711"  12.5s   two dialects, which do not see each other; 1 asked to give up`,
		`/l                                    "b"                    3h0m0s`,
	}, written(t, table, 0))
	require.Equal(t, written(t, table, 0), written(t, table, 140), "there is room")
	require.Equal(t, []string{
		`PATH                                  OWNER                  AGE     ODD`,
		`/locks/of/the/department/for/reports  "zkcoord 計算機 4711"  12.5s   two dialects, which do not see each other;`,
		`                                                                     1 asked to give up`,
		`/l                                    "b"                    3h0m0s`,
	}, written(t, table, 112))
	require.Equal(t, []string{
		`PATH              OWNER             AGE`,
		`/locks/…/reports  "zkcoor…機 4711"  12.5s`,
		`  two dialects, which do not see each`,
		`  other; 1 asked to give up`,
		`/l                "b"               3h0m0s`,
	}, written(t, table, 42))
	for columns := 30; columns < 160; columns++ {
		for _, line := range written(t, table, columns) {
			require.LessOrEqual(t, Cells(line), columns, line)
		}
	}
}

func TestNamesAreShortenedInTheMiddle(t *testing.T) {
	t.Parallel()
	for columns, want := range map[int]string{
		20: "name-0000000041", 15: "name-0000000041", 9: "name…0041", 8: "nam…0041", 1: "…",
	} {
		require.Equal(t, want, Middle("name-0000000041", columns))
	}
	require.Equal(t, "名…前", Middle("名前名前名前", 6), "of two columns each")
	require.Equal(t, 5, Cells("a\u0308o\u0308計x"), "marks take no column of their own")
	require.Equal(t, []string{"a sentence", "of words", "and/…/path"}, wrapped("a sentence of words and/a/long/path", 10))
}
