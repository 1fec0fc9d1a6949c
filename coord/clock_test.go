package coord_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

const hour = time.Hour

// The leader's clock is two hours behind this process's, and five years ahead.
func TestTheEnsemblesTimeIsTheLeadersAndNoClients(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"behind": -2 * hour, "ahead": 5 * 365 * 24 * hour} {
		runInBubble(t, name, func(b bubble) {
			b.Server.ShiftClock(ahead)
			c := b.Open()
			require.Equal(b, ahead, time.Until(ensembleTime(b, c, time.Minute)).Round(time.Second))
			time.Sleep(30 * time.Second)
			require.Equal(b, ahead, time.Until(ensembleTime(b, c, time.Minute)).Round(time.Second))
		})
	}
}

func ensembleTime(b bubble, c *coord.Client, within time.Duration) time.Time {
	b.Helper()
	now, err := recipe.EnsembleTime(b.Context(), c, "/dir/of/a/recipe", within)
	require.NoError(b, err)
	return now
}

func TestAClientThatHasWrittenKnowsTheTimeWithoutARequest(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(b, c.Create(b.Context(), "/node", nil))
		_, err := c.Txn(b.Context(), coord.CheckOp("/", -1), coord.SetOp("/node", nil, -1))
		require.NoError(b, err)
		before := b.Server.Counts()
		time.Sleep(hour)
		ensembleTime(b, c, 2*hour)
		require.Zero(b, b.Server.Counts().Since(before)[zkembed.OpMulti])
		b.Server.ShiftClock(-hour)
		require.Equal(b, -hour, time.Until(ensembleTime(b, c, hour)).Round(time.Second), "it has asked again")
	})
}

func TestTheEnsemblesTimeThatIsNotToldEndsWithTheContext(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}}, zkembed.Hang())
		_, err := recipe.EnsembleTime(coordtest.Within(b, time.Second), c, "/dir", 0)
		require.ErrorIs(b, err, context.DeadlineExceeded)
	})
}
