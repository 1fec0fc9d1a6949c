package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHoldsThatFollowOneAnotherAreAllowed(t *testing.T) {
	var s story
	s.hold("a", Exclusive, 10, 20, Release, 1)
	s.hold("b", Exclusive, 21, 30, Lost, 2)
	s.hold("c", Exclusive, 31, 40, Release, 5)
	holds(t, Mutex(key), &s)
	holds(t, Election(key), &s)
	holds(t, ReadersWriter(key), &s)
}

func TestHoldsThatExcludeEachOtherAreCaughtTogether(t *testing.T) {
	two := func(s *story) {
		s.hold("a", Exclusive, 10, 20, Release, 1)
		s.hold("b", Exclusive, 15, 30, Release, 2)
	}
	caught(t, nothing, map[string]breach{
		"two holds":  {Mutex(key), "overlap", two},
		"two writes": {ReadersWriter(key), "overlap", two},
		"after one that never ends": {Mutex(key), "overlap", func(s *story) {
			s.op("a", Exclusive, 1, 2, Token(1))
			s.hold("b", Exclusive, 1000, 1001, Release, 2)
		}},
		"far apart in the records": {direct(Mutex(key)), "overlap", func(s *story) {
			s.hold("a", Exclusive, 10, 1_000_000, Release, 1)
			for i := range 3 * chunk {
				s.hold("b", Exclusive, 20+10*i, 25+10*i, Release, int64(2+i))
			}
		}},
		"a writer after a reader": {ReadersWriter(key), "overlap", func(s *story) {
			s.hold("a", Shared, 10, 20, Release, 0)
			s.hold("w", Exclusive, 15, 30, Release, 1)
		}},
		"a reader after a writer": {ReadersWriter(key), "overlap", func(s *story) {
			s.hold("w", Exclusive, 10, 30, Release, 1)
			s.hold("a", Shared, 15, 20, Release, 0)
		}},
	})
}

func TestAHoldCountsUpToItsLossAndToWhatTheTestDid(t *testing.T) {
	for _, ends := range [][2]Kind{{Lost, Release}, {Broken, Lost}} {
		var s story
		id := s.op("a", Exclusive, 1, 2, Token(1))
		s.op("a", ends[0], 10, 10, ofID(id))
		s.op("a", ends[1], 50, 51, ofID(id))
		s.hold("b", Exclusive, 11, 20, Release, 2)
		holds(t, Mutex(key), &s)
	}
}

func TestAnAcquisitionLongAfterABreakIsJudged(t *testing.T) {
	for at, judged := range map[int]bool{12: false, 40: true} {
		var s story
		id := s.op("a", Exclusive, 1, at, Token(1))
		s.op("a", Broken, 10, 20, ofID(id))
		s.op("a", Release, 60, 61, ofID(id))
		s.hold("b", Exclusive, at+1, at+2, Release, 2)
		if judged {
			violated(t, Mutex(key), &s, "overlap")
		} else {
			holds(t, Mutex(key), &s)
		}
	}
}

func TestATokenThatDoesNotGrowIsCaughtButMayRepeatAmongTurns(t *testing.T) {
	for _, test := range []struct {
		rule Rule
		next int64
		ok   bool
	}{
		{Mutex(key), 6, false},
		{Mutex(key), 7, false},
		{Turns(key), 6, false},
		{Turns(key), 7, true},
		{Turns(key), 8, true},
	} {
		var s story
		s.hold("a", Exclusive, 10, 20, Release, 7)
		s.hold("b", Exclusive, 21, 30, Release, test.next)
		if test.ok {
			holds(t, test.rule, &s)
		} else {
			violated(t, test.rule, &s, "follows token 7")
		}
	}
}

func TestReadersMayShare(t *testing.T) {
	var s story
	s.hold("w", Exclusive, 1, 9, Release, 1)
	s.hold("a", Shared, 10, 20, Release, 0)
	s.hold("b", Shared, 12, 30, Lost, 0)
	s.hold("w", Exclusive, 31, 40, Release, 2)
	holds(t, ReadersWriter(key), &s)
}

func TestMoreLeasesThanThereAreAreCaught(t *testing.T) {
	var s story
	s.hold("a", Lease, 10, 20, Release, 0)
	s.hold("b", Lease, 12, 30, Release, 0)
	s.hold("c", Lease, 21, 40, Release, 0)
	holds(t, Leases(key, 2), &s)
	violated(t, Leases(key, 1), &s, "2 leases")
}

func TestALeaseCountsByItsWeight(t *testing.T) {
	var s story
	id := s.op("a", Lease, 1, 2, Weight(2))
	s.hold("b", Lease, 5, 9, Release, 0)
	s.op("a", Release, 20, 21, ofID(id))
	holds(t, Leases(key, 3), &s)
	violated(t, Leases(key, 2), &s, "3 leases")
}

func TestTheTimeUntilAHolderLearnsOfABreakIsReported(t *testing.T) {
	var s story
	for _, learnt := range []int{30, 45} {
		id := s.op("a", Exclusive, 1, 2)
		s.op("a", Broken, 10, 10, ofID(id))
		s.last().Err = "deleted"
		s.op("a", Lost, learnt, learnt, ofID(id))
		s.op("a", Release, 90, 91, ofID(id))
	}
	require.Equal(t, map[string]time.Duration{"deleted": 35 * time.Millisecond}, Unaware(s.records))
}

func TestARefusalOfATrustedHoldIsCaught(t *testing.T) {
	for name, test := range map[string]struct {
		call, ret int
		end       Kind
		caught    bool
	}{
		"within":                {12, 13, Release, true},
		"within a lost hold's":  {12, 13, Lost, true},
		"after":                 {21, 22, Lost, false},
		"asked within":          {19, 22, Lost, false},
		"after the test's hand": {12, 13, Broken, false},
	} {
		var s story
		id := s.hold("a", Exclusive, 10, 20, Release, 1)
		if test.end == Broken {
			s.op("a", Broken, 11, 11, ofID(id))
		} else {
			s.last().Kind = test.end
		}
		s.op("a", Refused, test.call, test.ret, Token(1))
		if test.caught {
			violated(t, direct(Mutex(key)), &s, "refused")
			violated(t, direct(ReadersWriter(key)), &s, "refused")
		} else {
			t.Log(name)
			holds(t, Mutex(key), &s)
		}
	}
}

func TestUnknownOutcomesAreCounted(t *testing.T) {
	var s story
	s.op("a", Put, 1, 2)
	s.op("a", Put, 3, 4, outcome(Unknown))
	s.op("a", Put, 5, 0, outcome(Open))
	s.op("a", Lost, 6, 6)
	require.Equal(t, map[Kind]Share{Put: {Unknown: 1, Of: 2}}, Unknowns(s.records))
}

// The next turn of a node that the test has deleted may be granted before the
// client hears of it, whether no turn was under way at that time, or one that
// was granted meanwhile. A node that was made since is not excused.
func TestWhatBreaksANodeBreaksItsNextTurn(t *testing.T) {
	between := func(kind Kind, over int) *story {
		var s story
		id := s.hold("c1.1", Exclusive, 1, 10, Release, 7)
		s.op("c1.1", kind, 20, over, ofID(id))
		return &s
	}
	within := func(kind Kind, seen int64) *story {
		var s story
		id := s.op("c1.1", Exclusive, 10, 25, Token(7))
		s.op("c1.1", kind, 20, 50, ofID(id), Token(seen))
		s.op("c1.1", Release, 28, 29, ofID(id))
		return &s
	}
	for _, test := range []struct {
		*story
		excused bool
	}{
		{between(Broken, 35), true},
		{between(Broken, 25), false},
		{between(Release, 35), false},
		{within(Broken, 7), true},
		{within(Broken, 6), false},
		{within(Lost, 7), false},
	} {
		test.hold("c1.2", Exclusive, 30, 45, Lost, 7)
		test.hold("c2.1", Exclusive, 40, 60, Release, 8)
		if test.excused {
			holds(t, Turns(key), test.story)
		} else {
			violated(t, Turns(key), test.story, "overlap")
		}
	}
}

func TestAPassageWithinATimeInWhichTheBarrierWasShutIsSeen(t *testing.T) {
	at := func(n int) time.Duration { return time.Duration(n) * time.Second }
	records := []Record{
		{ID: 1, Kind: Shut, Call: at(9), Return: at(10), Outcome: OK},
		{ID: 2, Kind: Release, Of: 1, Call: at(20), Return: at(22), Outcome: OK},
		{ID: 3, Kind: Shut, Call: at(29), Return: at(30), Outcome: OK},
	}
	pass := func(from, to int) {
		records = append(records,
			Record{ID: len(records) + 1, Client: "c", Kind: Pass, Call: at(from), Return: at(to), Outcome: OK})
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

func TestAWriteAfterThatOfALaterHolderOrThatUndoesAnotherIsStale(t *testing.T) {
	for name, last := range map[string]Write{"after a later holder's": {40, 2, 8}, "undoes": {40, 4, 7}} {
		var f Fence
		f.Wrote("lock", Write{30, 3, 7})
		f.Wrote("lock", Write{10, 1, 1})
		f.Wrote("lock", Write{20, 3, 3})
		f.Wrote("other", Write{40, 1, 1})
		total, stale := f.Stale()
		require.Equal(t, 4, total)
		require.Empty(t, stale)
		f.Wrote("lock", last)
		_, stale = f.Stale()
		require.Len(t, stale, 1, name)
	}
}
