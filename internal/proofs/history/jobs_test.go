package history

import (
	"testing"
	"time"
)

// jobs is a ledger at work: a run that failed, one that was lost, one that
// ended well, and those who asked.
func jobs() *story {
	var s story
	first := s.op("c", Run, 1, 2, Item("x"), Verdict("c1"), Token(1))
	s.op("c", Release, 3, 4, ofID(first))
	second := s.op("d", Run, 3, 5, Item("x"), Verdict("d1"), Token(2))
	s.op("d", Lost, 6, 6, ofID(second))
	third := s.op("c", Run, 6, 7, Item("x"), Verdict("c2"), Token(3))
	s.op("c", Did, 8, 10, ofID(third))
	s.op("d", Ask, 7, 9, Item("x"), Verdict("c2"))
	s.op("e", Ask, 20, 21, Item("x"), Verdict("c2"))
	return &s
}

func TestALedgerAtWorkIsAllowed(t *testing.T) {
	holds(t, Jobs(key, 3, 0, 0), jobs())
	holds(t, Jobs(key, 0, 0, 0), jobs())
}

func TestALedgerThatBreaksItsPromisesIsCaught(t *testing.T) {
	again := func(s *story) { s.op("e", Run, 30, 31, Item("x"), Verdict("e1"), Token(4)) }
	caught(t, jobs, map[string]breach{
		"a job runs again":     {Jobs(key, 0, 0, 0), "had ended with \"c2\" when e came to a run", again},
		"a job runs too often": {Jobs(key, 3, 1, 0), "ran 4 times, of 3", again},
		"a job runs twice at a time": {Jobs(key, 0, 0, 0), "while c had it", func(s *story) {
			s.op("c", Run, 1, 2, Item("y"), Verdict("y1"), Token(4))
			s.op("d", Run, 3, 4, Item("y"), Verdict("y2"), Token(5))
		}},
		"a result changes": {Jobs(key, 0, 0, 0), "when e came to a ask", func(s *story) {
			s.op("e", Ask, 30, 31, Item("x"), Verdict("d1"))
		}},
		"a result of no run": {Jobs(key, 0, 0, 0), "of none of its runs", func(s *story) {
			s.op("e", Ask, 5, 6, Item("x"), Verdict("z9"))
		}},
	})
}

func TestARecordOfAnEarlierJobMayHaveBeenDeleted(t *testing.T) {
	s := jobs()
	s.op("e", Run, 30, 31, Item("y"), Verdict("e1"), Token(4))
	s.op("e", Run, 40, 41, Item("x"), Verdict("e2"), Token(5))
	holds(t, Jobs(key, 0, 2, 0), s)
	violated(t, Jobs(key, 0, 3, 0), s, "had ended")
}

func TestAnOldRecordMayHaveBeenDeleted(t *testing.T) {
	s := jobs()
	s.op("e", Run, 40, 41, Item("x"), Verdict("e2"), Token(5))
	holds(t, Jobs(key, 0, 0, 32*time.Millisecond), s) // the end was written from 8 on
	violated(t, Jobs(key, 0, 0, 34*time.Millisecond), s, "had ended")
}

// slots is a schedule at work: a slot that was lost and run again, and the next
// one.
func slots() *story {
	var s story
	first := s.op("c", Run, 1, 2, Item("2026-11-23T16:00:00.5Z"), Verdict("c1"), Token(1))
	s.op("c", Lost, 3, 3, ofID(first))
	second := s.op("d", Run, 3, 5, Item("2026-11-23T16:00:00.5Z"), Verdict("d1"), Token(2))
	s.op("d", Did, 6, 7, ofID(second))
	third := s.op("c", Run, 6, 8, Item("2026-11-23T16:00:01Z"), Verdict("c2"), Token(3))
	s.op("c", Did, 9, 10, ofID(third))
	return &s
}

func TestAScheduleAtWorkIsAllowed(t *testing.T) {
	holds(t, Schedule(key, 500*time.Millisecond), slots())
	holds(t, Schedule(key, 0), slots())
}

func TestAScheduleThatBreaksItsPromisesIsCaught(t *testing.T) {
	again := func(item Detail) func(*story) {
		return func(s *story) { s.op("e", Run, 30, 31, item, Verdict("e1"), Token(4)) }
	}
	caught(t, slots, map[string]breach{
		"a slot runs again": {
			Schedule(key, 0), "had ended with \"c2\" when e came to a run", again(Item("2026-11-23T16:00:01Z")),
		},
		"a slot is skipped": {
			Schedule(key, 500*time.Millisecond), "1s earlier, not 500ms", again(Item("2026-11-23T16:00:02Z")),
		},
		"a slot runs in advance": {
			Schedule(key, 500*time.Millisecond), "8760h0m0s earlier", again(Item("2027-11-23T16:00:01Z")),
		},
	})
}
