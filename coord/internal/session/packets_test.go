package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/virtualtime"
)

// So it shows which of them it is that servers close on.
func TestPacketsThatServersMayCloseOnAreSentOneAtATime(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		p := newPackets(DefaultMaxPacket)
		p.refused([]request{{size: 100}, {size: 9000}, {size: 10000}})
		answered, err := p.admit(9000, t.Context().Done())
		require.NoError(t, err)
		second := make(chan func(), 1)
		go func() {
			answered, err := p.admit(9500, t.Context().Done())
			if err != nil {
				t.Error(err)
			}
			second <- answered
		}()
		free, err := p.admit(100, t.Context().Done())
		require.NoError(t, err)
		free()
		time.Sleep(time.Minute)
		require.Empty(t, second, "sent beside the first")
		answered()
		(<-second)()
	})
}
