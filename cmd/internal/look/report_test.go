//go:build linux || darwin || freebsd || openbsd

package look

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord/inspect"
)

func TestANodeThatIsGoneBeforeItIsReadKeepsItsPlace(t *testing.T) {
	t.Parallel()
	members := LineOf([]string{
		"_c_" + cmdtest.Guid2 + "-lock-0000000002", "_c_" + cmdtest.Guid1 + "-lock-0000000001", "_c_" + cmdtest.Guid3 + "-lock-0000000003", "other",
	})
	require.Len(t, members, 3)
	line := complete("/l", members, []inspect.Contender{{Contender: members[1], Owner: "b"}, {Contender: members[2], Owner: "c"}})
	require.Len(t, line, 3)
	require.Equal(t, "/l/_c_"+cmdtest.Guid1+"-lock-0000000001", line[0].Node)
	require.Equal(t, []string{"", "b", "c"}, []string{line[0].Owner, line[1].Owner, line[2].Owner})
	require.Equal(t, []bool{true, false, false}, []bool{line[0].Holds, line[1].Holds, line[2].Holds})
}

func TestTheAgeOfAContenderThatMayNotBeReadIsUnknown(t *testing.T) {
	t.Parallel()
	r := Report{Path: "/l"}
	unread := r.contender(1, inspect.Contender{Node: "/l/x\u202ey"})
	require.Nil(t, unread.Age)
	r.Contenders = []Contender{unread, r.contender(2, inspect.Contender{Node: "/l/z", Since: time.Now()})}
	var table bytes.Buffer
	require.NoError(t, r.Table(term.Page{Writer: &table}))
	require.Regexp(t, `unknown +unknown +unknown +"x\\u202ey"\n`, table.String())
	require.Regexp(t, `0s +none +z\n`, table.String())
}

func TestNamesOfItemsAreQuotedWhenThereIsSomethingUnseenInThem(t *testing.T) {
	t.Parallel()
	q := &QueueReport{Items: 1, First: []ItemReport{{Name: "entry-\u202e"}}}
	var table bytes.Buffer
	require.NoError(t, q.table(term.Page{Writer: &table}))
	require.Contains(t, table.String(), `"entry-\u202e"`)
}
