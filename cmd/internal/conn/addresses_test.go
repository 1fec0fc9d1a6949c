package conn

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAddressesOfServers(t *testing.T) {
	t.Parallel()
	addresses, chroot := AddressesOf("zk1, zk2:2182,[::1]/app/a")
	require.Equal(t, []string{"zk1:2181", "zk2:2182", "[::1]:2181"}, addresses)
	require.Equal(t, "/app/a", chroot)
}
