package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSlotsThatWereLeftOutAreKnownBetweenTheLooksThatCountedThem(t *testing.T) {
	h := New(limits())
	look := func(seconds, through float64, leftOut int, chosen bool) {
		h.See(Look{Began: at(seconds), Ended: at(seconds), Paths: map[string]Path{"/c": {
			Kind: "cron", Lanes: []string{}, Schedule: &Schedule{Through: at(through), LeftOut: leftOut, Chosen: chosen},
		}}})
	}
	look(0, 0, 7, true) // before the first look: nobody knows when
	look(1, 10, 7, true)
	look(2, 20, 9, true)
	look(3, 30, 10, false)
	look(4, 30, 10, false)
	require.Equal(t, []Skip{{"/c", at(10), at(20), 2, false}, {"/c", at(20), at(30), 1, true}}, h.Skips())
	h.See(Look{Began: at(5), Ended: at(5)})
	look(6, 40, 2, true) // it was removed, and made anew
	look(7, 5, 3, true)  // it was rewound
	require.Len(t, h.Skips(), 2)
	h.See(Look{Began: at(9000), Ended: at(9000)})
	require.Empty(t, h.Skips(), "they are too old")

	h = New(Limits{Keep: time.Hour, Intervals: 5, Points: 100, Apart: time.Minute})
	for i := range 20 {
		look(float64(i), float64(i), i, true)
	}
	require.Len(t, h.Skips(), 5, "what is remembered is bounded")
}
