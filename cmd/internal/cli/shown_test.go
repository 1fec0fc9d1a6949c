package cli

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
)

func TestTheAgeOfAContenderThatMayNotBeReadIsUnknown(t *testing.T) {
	r := report{Path: "/l"}
	unread := r.contender(1, coord.ContenderInfo{Node: "/l/x\u202ey"})
	require.Nil(t, unread.Age)
	r.Contenders = []contender{unread, r.contender(2, coord.ContenderInfo{Node: "/l/z", Since: time.Now()})}
	var table bytes.Buffer
	require.NoError(t, r.table(&table))
	require.Regexp(t, `unknown +unknown +0x0 +"x\\u202ey"\n`, table.String())
	require.Regexp(t, `0s +0x0 +z\n`, table.String())
}

func TestNamesOfItemsAreQuotedWhenThereIsSomethingUnseenInThem(t *testing.T) {
	q := &queueReport{Items: 1, First: []itemReport{{Name: "entry-\u202e"}}}
	var table bytes.Buffer
	require.NoError(t, q.table(&table, report{Path: "/q"}))
	require.Contains(t, table.String(), `"entry-\u202e"`)
}
