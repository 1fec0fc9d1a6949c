package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAPassageWithinATimeInWhichTheBarrierWasShutIsSeen(t *testing.T) {
	at := func(n int) time.Duration { return time.Duration(n) * time.Second }
	records := []Record{
		{ID: 1, Kind: Shut, Call: at(9), Return: at(10), Outcome: OK},
		{ID: 2, Kind: Release, Of: 1, Call: at(20), Return: at(22), Outcome: OK},
		{ID: 3, Kind: Shut, Call: at(29), Return: at(30), Outcome: OK},
	}
	pass := func(from, to int) {
		records = append(records, Record{ID: len(records) + 1, Client: "c", Kind: Pass, Call: at(from), Return: at(to), Outcome: OK})
	}
	for _, fair := range [][2]int{{5, 8}, {5, 15}, {15, 25}, {5, 40}, {21, 29}, {29, 31}, {15, 35}} {
		pass(fair[0], fair[1])
	}
	require.Empty(t, Barrier("").Judge(records).Violations)
	pass(11, 19)
	pass(31, 1000)
	require.Len(t, Barrier("").Judge(records).Violations, 2)
	require.Len(t, Barrier("", at(10), at(29)).Judge(records).Violations, 1, "another had opened it")
	require.Len(t, Barrier("", at(9), at(22)).Judge(records).Violations, 2)
}
