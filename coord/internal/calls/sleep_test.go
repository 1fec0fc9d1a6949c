package calls

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/virtual"
)

func TestASleepMayBeOnMoreChannelsThanCanBeSelected(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		wake := make([]<-chan struct{}, most+1)
		for i := range wake {
			wake[i] = make(chan struct{})
		}
		begun := time.Now()
		Sleep(t.Context(), wake, time.Time{})
		require.NotZero(t, time.Since(begun))
	})
}
