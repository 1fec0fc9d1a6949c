package history

import "testing"

// meeting adds a round of two, from the given moment on, which takes 20 ms.
func (s *story) meeting(number int64, at int) (a, b int) {
	a = s.op("a", Enter, at, at+5, Round(number))
	b = s.op("b", Enter, at+2, at+6, Round(number))
	s.op("a", Leave, at+10, at+18, ofID(a), Verdict("complete"))
	s.op("b", Leave, at+15, at+19, ofID(b), Verdict("complete"))
	return a, b
}

func TestRoundsThatFollowOneAnotherAreAllowed(t *testing.T) {
	var s story
	s.meeting(1, 0)
	s.meeting(2, 30)
	holds(t, Rounds(key, 2), &s)
}

func TestAMemberThatDiesEndsItsPartInTheRound(t *testing.T) {
	var s story
	a := s.op("a", Enter, 0, 5, Round(1))
	b := s.op("b", Enter, 2, 6, Round(1))
	s.op("b", Lost, 8, 8, ofID(b))
	s.op("a", Leave, 7, 30, ofID(a), Verdict("b died"))
	holds(t, Rounds(key, 2), &s)
}

func TestARoundThatOpensBeforeAllHaveComeIsCaught(t *testing.T) {
	var s story
	a := s.op("a", Enter, 0, 5, Round(1))
	b := s.op("b", Enter, 6, 8, Round(1))
	s.op("a", Leave, 10, 18, ofID(a))
	s.op("b", Leave, 12, 19, ofID(b))
	violated(t, Rounds(key, 2), &s, "when only 1 had come")
}

func TestARoundWithTooManyMembersIsCaught(t *testing.T) {
	var s story
	s.meeting(1, 0)
	c := s.op("c", Enter, 0, 7, Round(1))
	s.op("c", Leave, 14, 20, ofID(c), Verdict("complete"))
	violated(t, Rounds(key, 2), &s, "has 3 members")
}

func TestAMemberWhoLeavesBeforeTheOthersIsCaught(t *testing.T) {
	var s story
	a := s.op("a", Enter, 0, 5, Round(1))
	b := s.op("b", Enter, 2, 6, Round(1))
	s.op("a", Leave, 7, 9, ofID(a))
	s.op("b", Leave, 20, 21, ofID(b))
	violated(t, Rounds(key, 2), &s, "let a go")
}

func TestAMemberThatNeverLeavesKeepsTheOthers(t *testing.T) {
	var s story
	a := s.op("a", Enter, 0, 5, Round(1))
	s.op("b", Enter, 2, 6, Round(1))
	s.op("a", Leave, 7, 9, ofID(a))
	violated(t, Rounds(key, 2), &s, "let a go")
}

func TestDifferentVerdictsAreCaught(t *testing.T) {
	var s story
	a, b := s.op("a", Enter, 0, 5, Round(1)), s.op("b", Enter, 2, 6, Round(1))
	s.op("a", Leave, 7, 12, ofID(a), Verdict("complete"))
	s.op("b", Leave, 8, 12, ofID(b), Verdict("a died"))
	violatedDirectly(t, Rounds(key, 2), &s, `as "a died" for b`)
}

func TestMixedRoundsAreCaught(t *testing.T) {
	var s story
	s.meeting(1, 0)
	s.meeting(2, 8)
	violatedDirectly(t, Rounds(key, 2), &s, "was opened at 13ms while round 1 lasted")
}

func TestARoundThatIsSmallerThanItSaysIsCaught(t *testing.T) {
	var s story
	a := s.op("a", Enter, 0, 5, Round(1), Weight(1))
	b := s.op("b", Enter, 2, 6, Round(1), Weight(1))
	s.op("a", Leave, 10, 18, ofID(a), Verdict(Complete))
	s.op("b", Leave, 15, 19, ofID(b), Verdict(Complete))
	violatedDirectly(t, Rounds(key, 2), &s, "is one of 1 members")
}

func TestACompleteRoundWhoseMemberWasLostIsCaught(t *testing.T) {
	var s story
	a := s.op("a", Enter, 0, 5, Round(1))
	b := s.op("b", Enter, 2, 6, Round(1))
	s.op("b", Lost, 8, 8, ofID(b))
	s.op("a", Leave, 10, 18, ofID(a), Verdict(Complete))
	violatedDirectly(t, Rounds(key, 2), &s, "had not left")
}
