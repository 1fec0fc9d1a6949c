package look

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/coordtest"
)

func TestAHolderIsDatedFromItsGrantIfThatWasSeen(t *testing.T) {
	t.Parallel()
	coordtest.Virtual(t, func(t *testing.T) {
		var seen Sightings
		ages := map[string]float64{}
		look := func(holds ...string) map[string]*float64 {
			defer seen.Look()()
			told := map[string]*float64{}
			for node, age := range ages {
				is := false
				for _, holder := range holds {
					is = is || holder == node
				}
				told[node] = seen.See(node, is, &age)
			}
			return told
		}
		pass := func(d time.Duration) {
			time.Sleep(d)
			for node := range ages {
				ages[node] += d.Seconds()
			}
		}
		ages["first"], ages["second"] = 3600, 3600
		told := look("first")
		require.Nil(t, told["first"], "the grant was before the first look")
		require.Nil(t, told["second"], "it waits")
		pass(time.Minute)
		require.Nil(t, look("first")["first"])

		delete(ages, "first")
		pass(time.Minute)
		require.InDelta(t, 0, *look("second")["second"], 0, "it waited at the look before")
		pass(time.Minute)
		require.InDelta(t, 60, *look("second")["second"], 0)

		delete(ages, "second")
		pass(time.Minute)
		ages["third"], ages["old"] = 7, 3600
		told = look("third", "old")
		require.InDelta(t, 7, *told["third"], 0, "it came after the look before")
		require.Nil(t, told["old"], "it was left out before")
	})
}
