package shards

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The record of another program.
func TestAMemberWithAWeightThatNoOptionGivesIsNone(t *testing.T) {
	for _, weight := range []int{maxWeight, maxWeight + 1, 1 << 62, 1<<63 - 1} {
		data, err := json.Marshal(Member{ID: "a", Weight: weight})
		require.NoError(t, err)
		var there []Member
		for _, node := range []string{"n1", "n2", "n3"} {
			m, ok := new(Shards).member(node, data, nil)
			require.Equal(t, weight <= maxWeight, ok)
			if m.ID = node; ok {
				there = append(there, m)
			}
		}
		p := &Plan{Keys: ranges(256), Ranges: 256, Owners: make([]int, 256)}
		for i := range p.Owners {
			p.Owners[i] = Nobody
		}
		p.next(there, "a", limits{}, nil, time.Now())
	}
}
