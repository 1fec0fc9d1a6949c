package shards

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
)

// The record of another program.
func TestAMemberWithAWeightThatNoOptionGivesIsNone(t *testing.T) {
	for _, weight := range []int{maxWeight, maxWeight + 1, 1 << 62, 1<<63 - 1} {
		data, err := json.Marshal(Member{ID: "a", Weight: weight})
		require.NoError(t, err)
		var there []Member
		for _, node := range []string{"n1", "n2", "n3"} {
			rec, ok := members{}.decode(node, data, coord.Stat{Owner: 1})
			require.True(t, ok)
			require.Equal(t, weight <= maxWeight, rec.ID != "")
			if rec.ID != "" {
				rec.ID = node
				there = append(there, rec.Member)
			}
		}
		p := &Plan{Keys: ranges(256), Ranges: 256, Owners: make([]int, 256)}
		for i := range p.Owners {
			p.Owners[i] = Nobody
		}
		p.next(there, "a", limits{}, nil, time.Now())
	}
}
