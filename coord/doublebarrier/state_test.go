package doublebarrier

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/internal/coordtest"
)

// line makes members with these sequence numbers.
func line(sequences ...int32) (all []coord.Contender) {
	for _, s := range sequences {
		all = append(all, coord.Contender{Name: fmt.Sprint("m", s), Sequence: s})
	}
	return all
}

func TestARoundTakesTheOldestThatNoRoundHasHad(t *testing.T) {
	s := state{Format: format, Size: 2, round: round{Number: 3, First: 5, Next: 10}}
	for _, few := range [][]coord.Contender{nil, line(12), line(5, 9), line(5, 9, 12)} {
		_, enough := s.opening(few, 2)
		require.False(t, enough, "%v", few)
	}
	next, enough := s.opening(line(5, 9, 11, 14, 15), 2)
	require.True(t, enough)
	require.Equal(t, round{Number: 4, First: 10, Next: 15}, next.round)
	require.Equal(t, []string{"m11", "m14"}, next.Members)
	require.True(t, next.Open)
}

func TestAnotherNumberOfMembersLeavesTheOutcomeOfTheLastRound(t *testing.T) {
	over := state{
		Format: format, Size: 3, round: round{Number: 3, First: 5, Next: 10, Missing: []int{1}}, Past: []round{{Number: 2}},
	}
	require.Equal(t, state{Format: format, Size: 2, round: over.round}, over.resized(2))
	crashed := over
	crashed.Open, crashed.Missing, crashed.Members = true, nil, []string{"m5", "m6", "m9"}
	r, known := crashed.resized(2).outcome(3)
	require.True(t, known)
	require.Equal(t, []int{0, 1, 2}, r.Missing)
}

func TestAnOutcomeIsKeptAsLongAsAMemberOfItsRoundIsThere(t *testing.T) {
	s := state{Format: format, Size: 1}
	at := int32(0)
	open := func(there ...int32) {
		next, enough := s.opening(append(line(there...), line(at)...), 1)
		require.True(t, enough)
		s = next
		at++
	}
	open()
	s = s.closing([]int{0}, map[int]string{0: "why"})
	open(0) // the first round's member is slow
	_, over := s.outcome(2)
	require.False(t, over)
	s = s.closing(nil, nil)
	open(0)
	open(0) // the third crashed, and nobody is left to ask for its outcome
	for number, want := range map[int64][]int{1: {0}} {
		r, over := s.outcome(number)
		require.True(t, over)
		require.Equal(t, want, r.Missing)
		require.Equal(t, map[int]string{0: "why"}, r.Reasons)
	}
	for _, number := range []int64{2, 3, 4} {
		_, over := s.outcome(number)
		require.False(t, over, number)
	}
	open()
	_, over = s.outcome(1)
	require.False(t, over)
}

func TestAChrootCountsForTheSizeOfTheLargestRound(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		const chroot = "/chroot"
		c, err := coord.Open(b.Context(), b.Server.ConnectString()+chroot, coord.WithDialer(b.Server.DialContext))
		require.NoError(b, err)
		defer func() { require.NoError(b, c.Close(context.Background())) }()
		path := "/" + strings.Repeat("p", (c.Info().MaxPacket-otherBytes)/(MaxMembers+1)-bytesPerMember-1-len(chroot))
		require.NoError(b, coordtest.Err(New(c, path, MaxMembers)))
		require.ErrorIs(b, coordtest.Err(New(c, path+"p", MaxMembers)), coord.ErrInvalid)
	})
}

func TestReadyCanBeReadBack(t *testing.T) {
	for _, s := range []state{
		{Format: format, Size: 3},
		{
			Format: format, Size: 2, Open: true, round: round{
				Number: math.MaxInt64, First: 1, Next: math.MaxInt32,
			}, Members: []string{"a", "b"},
		},
		{
			Format: format, Size: 2, round: round{Number: 8, Missing: []int{0, 1}}, Past: []round{
				{Number: 3, Missing: []int{1}, Reasons: map[int]string{1: "why"}},
			},
		},
	} {
		back, err := decode(encode(s))
		require.NoError(t, err)
		require.Equal(t, s, back)
	}
}

// A version without reasons writes none, and one with more reads this one's.
func TestReadyOfAnOlderAndANewerVersionIsRead(t *testing.T) {
	s, err := decode([]byte(`{"format":1,"size":2,"round":7,"first":17,"next":19,"missing":[1],"open":false}`))
	require.NoError(t, err)
	require.Equal(t, state{Format: format, Size: 2, round: round{Number: 7, First: 17, Next: 19, Missing: []int{1}}}, s)
	s, err = decode(
		[]byte(
			`{"format":1,"size":2,"round":7,"first":17,"next":19,"missing":[1],"reasons":{"1":"why"},"news":[1],"open":false}`))
	require.NoError(t, err)
	require.Equal(t, map[int]string{1: "why"}, s.Reasons)
}

// The opening of any barrier that New accepts fits into one packet, also for
// the longest names, and with outcomes kept.
func TestTheOpeningOfTheLargestRoundFitsIntoOneTransaction(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		for _, limit := range []int{0xfffff, 2 << 20} {
			theOpeningFits(b, b.Open(coord.WithMaxPacket(limit)))
		}
	})
}

func theOpeningFits(t coordtest.Bubble, c *coord.Client) {
	packet := c.Info().MaxPacket
	for _, n := range []int{1, 200, MaxMembers} {
		path := "/" + strings.Repeat("p", (packet-otherBytes)/(n+1)-bytesPerMember-1)
		require.NoError(t, coordtest.Err(New(c, path, n)))
		require.ErrorIs(t, coordtest.Err(New(c, path+"p", n)), coord.ErrInvalid)
		var all []coord.Contender
		for i := range n {
			name := fmt.Sprintf("_c_01234567-89ab-cdef-0123-456789abcdef-member-%010d", 2000000000+i)
			all = append(all, coord.Contender{Name: name, Sequence: int32(2000000000 + i)})
		}
		next, enough := state{Format: format, Size: n, round: round{Number: 1 << 40}}.opening(all, n)
		require.True(t, enough)
		bytes := len(encode(next)) + len(path) + 100
		for _, name := range next.Members {
			bytes += len(path) + 1 + len(name) + 4 + 4 + 9 // a check: path with length, version, header
		}
		require.Less(t, bytes, packet-4096)
	}
}

// Two clients read the record and decide; only one of them may be believed.
func TestOfSeveralThatChangeTheRecordAtOnceOneSucceeds(t *testing.T) {
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		a, c := record{b.Open(), "/b/ready"}, record{b.Open(), "/b/ready"}
		var from snapshot
		require.NoError(b, a.client.Wait(b.Context(), func(v *coord.View) (done bool, err error) {
			from, err = a.watchOrMake(v, 2)
			return true, err
		}))
		same, err := c.get(b.Context())
		require.NoError(b, err)
		require.Equal(b, from.stat.Version, same.stat.Version)

		require.NoError(b, a.write(b.Context(), a.client.Txn, from, from.resized(3)))
		require.ErrorIs(b, c.write(b.Context(), c.client.Txn, same, same.resized(4)), coord.ErrBadVersion)

		now, err := a.get(b.Context())
		require.NoError(b, err)
		require.Equal(b, 3, now.Size)
		require.NoError(b, c.write(b.Context(), c.client.Txn, now, now.resized(4)))
	})
}
