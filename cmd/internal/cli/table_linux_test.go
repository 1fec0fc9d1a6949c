//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func written(t *testing.T, table table, columns int) []string {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, table.write(page{&text, columns}))
	return strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
}

func TestATableFitsInItsColumns(t *testing.T) {
	table := table{heads: []string{"PATH", "OWNER", "AGE"}, about: "ODD"}
	table.add("two dialects, which do not see each other; 1 asked to give up", "/locks/of/the/department/for/reports", `"zkcoord 計算機 4711"`, "12.5s")
	table.add("", "/l", `"b"`, "3h0m0s")
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
			require.LessOrEqual(t, cells(line), columns, line)
		}
	}
}

func TestNamesAreShortenedInTheMiddle(t *testing.T) {
	for columns, want := range map[int]string{20: "name-0000000041", 15: "name-0000000041", 9: "name…0041", 8: "nam…0041", 1: "…"} {
		require.Equal(t, want, middle("name-0000000041", columns))
	}
	require.Equal(t, "名…前", middle("名前名前名前", 6), "of two columns each")
	require.Equal(t, 5, cells("a\u0308o\u0308計x"), "marks take no column of their own")
	require.Equal(t, []string{"a sentence", "of words", "and/…/path"}, wrapped("a sentence of words and/a/long/path", 10))
}

// On a terminal, or with COLUMNS, lines end where the screen does; in a pipe
// names are whole.
func TestWhatPeopleSeeFitsOnTheirScreens(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	tangle(t, w)
	everyRecipe(t, w)
	long := w.Path("locks/" + strings.Repeat("department/", 8) + "report")
	for _, guid := range []string{guid1, guid2} {
		contend(t, w, long, map[string]string{"_c_" + guid + "-lock-000000000" + guid[:1]: strings.Repeat("application ", 8) + guid})
	}
	for _, verb := range []string{
		"inspect " + long, "inspect " + w.Path("app/jobs"), "inspect " + w.Path("kazoo"), "inspect " + w.Path("mixed"),
		"inspect " + w.Path("app/round"), "inspect " + w.Path("app/licence"), "ls " + below(w), "graph " + below(w), "doctor " + below(w),
	} {
		for _, columns := range []int{80, 100} {
			cmd := exec.Command(os.Args[0], append(target(w), strings.Fields(verb)...)...)
			cmd.Env = []string{fmt.Sprint("COLUMNS=", columns)}
			for line := range strings.SplitSeq(startAs(t, cmd).output(), "\n") {
				require.LessOrEqual(t, cells(line), columns, "%s: %s", verb, line)
			}
		}
	}
	whole := on(t, w, "inspect", long).output()
	require.Contains(t, whole, long+": lock")
	require.Regexp(t, `(?m) _c_`+guid2+`-lock-0000000002$`, whole)

	tty := onTerminal(t, w, os.Args[0], "inspect", long)
	tty.sees("0002\r\n")
	screen := strings.TrimRight(tty.screen.String(), "\r\n")
	require.Contains(t, screen, "…")
	for line := range strings.SplitSeq(screen, "\r\n") {
		require.LessOrEqual(t, cells(line), 80, line)
	}
}
