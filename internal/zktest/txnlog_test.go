package zktest

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

func TestTheLogsOfAnEnsembleTellWhatItCarriedOut(t *testing.T) {
	t.Parallel()
	ens := RequireEnsemble(t)
	conn := Connect(t, ens.ConnectString(), patient)
	for _, path := range []string{"/one", "/two", "/three"} {
		create(t, conn, path, 0)
	}
	require.NoError(t, conn.Delete("/one", -1))
	_, err := conn.Multi(
		&zk.SetDataRequest{Path: "/two", Data: []byte("data"), Version: -1}, &zk.CheckVersionRequest{Path: "/three", Version: -1},
		&zk.DeleteRequest{Path: "/three", Version: -1}, &zk.DeleteRequest{Path: "/two", Version: -1})
	require.NoError(t, err)

	all, err := ens.Transactions()
	require.NoError(t, err)
	var own []Transaction
	for i, tx := range all {
		require.True(t, i == 0 || tx.Zxid > all[i-1].Zxid)
		if tx.Session == conn.SessionID() && tx.Type > 0 {
			own = append(own, tx)
		}
	}
	require.Len(t, own, 5)
	require.Equal(t, []string{"/one"}, own[3].Deleted)
	require.Equal(t, []string{"/three", "/two"}, own[4].Deleted)
	require.Greater(t, own[4].Xid, own[3].Xid)
	require.False(t, own[4].Time.Before(own[0].Time))
}
