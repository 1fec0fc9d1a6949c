package history

import "testing"

// given are numbers at work: two at a time, and one of an owner that returns.
func given() *story {
	var s story
	first := s.op("c", Number, 1, 2, Item("0"), Verdict("a"), Token(1))
	s.op("d", Number, 1, 3, Item("1"), Token(2))
	s.op("c", Release, 4, 5, ofID(first))
	second := s.op("e", Number, 3, 6, Item("0"), Verdict("a"), Token(3))
	s.op("e", Lost, 8, 8, ofID(second))
	s.op("c", Number, 9, 10, Item("2"), Verdict("a"), Token(4))
	return &s
}

func TestNumbersOfOnesOwnAreAllowed(t *testing.T) { holds(t, Numbers(key), given()) }

func TestNumbersThatBreakTheirPromisesAreCaught(t *testing.T) {
	caught(t, given, map[string]breach{
		"a number of two": {Numbers(key), `"1": number of c`, func(s *story) {
			s.op("c", Number, 11, 12, Item("1"), Token(5))
		}},
		"an owner of two": {Numbers(key), `"a": number of d`, func(s *story) {
			s.op("d", Number, 11, 12, Item("0"), Verdict("a"), Token(5))
		}},
		"a token that does not grow": {Numbers(key), "token 3 of d follows token 3 of e", func(s *story) {
			s.op("d", Number, 11, 12, Item("0"), Token(3))
		}},
	})
}

// counting are adds: two at the same time, one of which nothing is known, and
// one that failed.
func counting() *story {
	var s story
	s.op("c", Add, 1, 4, Sum(2))
	s.op("d", Add, 2, 3, Sum(1))
	s.op("d", Add, 5, 0, outcome(Unknown))
	s.op("c", Add, 5, 6, outcome(Failed))
	s.op("e", Add, 20, 21, Sum(4))
	return &s
}

func TestACounterAtWorkIsAllowed(t *testing.T) { holds(t, Counter(key), counting()) }

func TestSumsThatCannotBeAreCaught(t *testing.T) {
	for words, sum := range map[string]int64{"the sum 4": 4, "the sum 6: 4 adds": 6, "the sum 3: 4 adds": 3} {
		s := counting()
		s.op("f", Add, 30, 31, Sum(sum))
		violated(t, Counter(key), s, words)
	}
	s := counting()
	s.op("d", Add, 5, 0, outcome(Unknown))
	s.op("f", Add, 30, 31, Sum(6))
	s.op("f", Add, 32, 33, Sum(5))
	violated(t, Counter(key), s, "the sum 5 after 6")
}
