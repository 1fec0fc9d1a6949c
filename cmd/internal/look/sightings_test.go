package look

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/virtual"
)

func TestAHolderIsDatedFromItsGrantIfThatWasSeen(t *testing.T) {
	t.Parallel()
	virtual.Test(t, func(t *testing.T) {
		var seen Sightings
		ages := map[string]float64{}
		look := func(holds ...string) map[string]Held {
			defer seen.Look()()
			told := map[string]Held{}
			for node, age := range ages {
				told[node] = seen.See(node, 1, slices.Contains(holds, node), &age)
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
		require.Zero(t, told["first"], "the grant was before the first look")
		require.Zero(t, told["second"], "it waits")
		pass(2 * time.Second)
		require.Zero(t, look("first")["first"])

		delete(ages, "first")
		pass(2 * time.Second)
		require.Equal(t, "for 2s", look("second")["second"].String(), "it waited at the look before")
		pass(time.Minute)
		require.InDelta(t, 62, *look("second")["second"].HeldFor, 0)

		delete(ages, "second")
		pass(10 * time.Second)
		ages["third"], ages["old"] = 2, 3600
		told = look("third", "old")
		require.Equal(t, "for 2s", told["third"].String(), "it came after the look before")
		require.Zero(t, told["old"], "it was left out before")
	})
}

// After a pause of the looks, a holder that waited for most of its life must
// not be said to have held for all of it.
func TestAGrantThatFellIntoAPauseOfTheLooksIsDatedAtMost(t *testing.T) {
	t.Parallel()
	virtual.Test(t, func(t *testing.T) {
		var seen Sightings
		look := func(age float64) Held {
			defer seen.Look()()
			return seen.See("/l/n", 1, true, &age)
		}
		seen.Look()() // and nobody is there
		time.Sleep(time.Minute)
		require.Equal(t, "for at most 27s", look(27).String(), "it may have waited for most of that")
		time.Sleep(2 * time.Second)
		require.Equal(t, "for at most 29s", look(29).String())
		time.Sleep(10 * time.Minute)
		require.Equal(t, "for 10m29s", look(629).String(), "what is not known is little of that")
	})
}

// The nodes of slots and of a group's members keep their names from one holder
// to the next.
func TestAHolderIsKnownByItsNodeAndNotByTheNodesName(t *testing.T) {
	t.Parallel()
	virtual.Test(t, func(t *testing.T) {
		var seen Sightings
		look := func(token int64, age float64) Held {
			defer seen.Look()()
			return seen.See("/ids/held/0", token, true, &age)
		}
		require.Zero(t, look(7, 3600))
		time.Sleep(2 * time.Second)
		require.Equal(t, "for 1s", look(8, 1).String(), "another holder of the same slot")
		time.Sleep(2 * time.Second)
		require.Equal(t, "for 3s", look(8, 3).String())
	})
}
