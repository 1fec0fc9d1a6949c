package look

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord/inspect"
)

func TestANodeThatIsGoneBeforeItIsReadKeepsItsPlace(t *testing.T) {
	t.Parallel()
	members := LineOf([]string{
		"_c_" + cmdtest.Guid2 + "-lock-0000000002", "_c_" + cmdtest.Guid1 + "-lock-0000000001",
		"_c_" + cmdtest.Guid3 + "-lock-0000000003", "other",
	})
	require.Len(t, members, 3)
	line := complete("/l", members,
		[]inspect.Contender{{Contender: members[1], Owner: "b"}, {Contender: members[2], Owner: "c"}})
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
	r.Table(term.Page{Writer: &table})
	require.Regexp(t, `unknown +unknown +unknown +"x\\u202ey"\n`, table.String())
	require.Regexp(t, `0s +none +z\n`, table.String())
}

func TestNamesOfItemsAreQuotedWhenThereIsSomethingUnseenInThem(t *testing.T) {
	t.Parallel()
	q := &QueueReport{Items: 1, First: []ItemReport{{Name: "entry-\u202e"}}}
	var table bytes.Buffer
	q.table(term.Page{Writer: &table})
	require.Contains(t, table.String(), `"entry-\u202e"`)
}

func TestAnItemInTheHandOfASilentConsumerSaysSo(t *testing.T) {
	r := Report{
		Queue: &QueueReport{First: []ItemReport{{InHand: true, Session: "0x1"}, {InHand: true, Session: "0x2"}, {}}},
	}
	book := AddressBook{asked: time.Now().Add(time.Hour), known: map[string]conn.Remote{
		"0x1": {Address: "a:1", Timeout: 10 * time.Second, Silent: 7 * time.Second},
		"0x2": {Address: "b:2", Timeout: 10 * time.Second, Silent: 3 * time.Second},
	}}
	book.Fill(t.Context(), &r)
	require.Equal(t, "session 0x1 at a:1, silent for 7s of 10s", r.Queue.First[0].consumer())
	require.Equal(t, "session 0x2 at b:2", r.Queue.First[1].consumer())
	require.Nil(t, r.Queue.First[2].SilentFor)
}
