package history

import "testing"

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
	holds(t, Jobs(key, 3, 0), jobs())
	holds(t, Jobs(key, 0, 0), jobs())
}

func TestALedgerThatBreaksItsPromisesIsCaught(t *testing.T) {
	again := func(s *story) { s.op("e", Run, 30, 31, Item("x"), Verdict("e1"), Token(4)) }
	caught(t, jobs, map[string]breach{
		"a job runs again":     {Jobs(key, 0, 0), "had ended with \"c2\" when e came to a run", again},
		"a job runs too often": {Jobs(key, 3, 1), "ran 4 times, of 3", again},
		"a job runs twice at a time": {Jobs(key, 0, 0), "while c had it", func(s *story) {
			s.op("c", Run, 1, 2, Item("y"), Verdict("y1"), Token(4))
			s.op("d", Run, 3, 4, Item("y"), Verdict("y2"), Token(5))
		}},
		"a result changes": {Jobs(key, 0, 0), "when e came to a ask", func(s *story) {
			s.op("e", Ask, 30, 31, Item("x"), Verdict("d1"))
		}},
		"a result of no run": {Jobs(key, 0, 0), "of none of its runs", func(s *story) {
			s.op("e", Ask, 5, 6, Item("x"), Verdict("z9"))
		}},
	})
}

func TestARecordOfAnEarlierJobMayHaveBeenDeleted(t *testing.T) {
	s := jobs()
	s.op("e", Run, 30, 31, Item("y"), Verdict("e1"), Token(4))
	s.op("e", Run, 40, 41, Item("x"), Verdict("e2"), Token(5))
	holds(t, Jobs(key, 0, 2), s)
	violated(t, Jobs(key, 0, 3), s, "had ended")
}
