package soak

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestRequestsThatTheServersCarryOutLateAreSeen(t *testing.T) {
	begin := time.Now()
	at := func(session int64, xid int32, ms int, path string) zktest.Transaction {
		return zktest.Transaction{Session: session, Xid: xid, Time: begin.Add(time.Duration(ms) * time.Millisecond), Type: 2, Deleted: []string{path}}
	}
	all := []zktest.Transaction{
		at(1, 1, 0, ""), at(1, 3, 10, ""), at(2, 2, 20, ""), at(1, 2, 30, ""), // a goroutine overtook another
		at(1, 6, 50, ""), at(1, 7, 900, ""), at(1, 4, 1000, "/gate"), at(1, 5, 1001, ""), at(2, 3, 2000, ""),
	}
	found := late(all)
	require.Len(t, found, 2)
	require.EqualValues(t, 4, found[0].Xid)
	require.Equal(t, []time.Duration{time.Second, time.Second + time.Millisecond - 1}, opened(found, "/gate", begin))
	require.Empty(t, opened(found, "/other", begin))
}
