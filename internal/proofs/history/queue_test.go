package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// ordinary is a queue at work: items taken, received, lost and received again.
func ordinary() *story {
	var s story
	for i, item := range []string{"x", "y", "z"} {
		s.op("p", Put, 10*i, 10*i+5, Item(item))
	}
	s.op("c", Take, 30, 31, Item("x"))
	first := s.op("c", Receive, 32, 33, Item("y"))
	s.op("c", Lost, 40, 40, ofID(first))
	second := s.op("d", Receive, 35, 45, Item("y"))
	s.op("d", Ack, 46, 47, ofID(second))
	third := s.op("d", Receive, 48, 49, Item("z"))
	s.op("d", Nack, 50, 51, ofID(third))
	s.op("c", Take, 50, 55, Item("z"))
	return &s
}

func TestAQueueAtWorkIsAllowed(t *testing.T) {
	holds(t, Queue(key, true), ordinary())
	holds(t, FIFO(key), ordinary())
}

func TestAnItemThatWasNeverPutIsCaught(t *testing.T) {
	s := ordinary()
	s.op("c", Take, 60, 61, Item("ghost"))
	violated(t, Queue(key, true), s, "had not been put in")
}

func TestAnItemThatComesOutBeforeItWasPutIsCaught(t *testing.T) {
	var s story
	s.op("c", Take, 1, 2, Item("x"))
	s.op("p", Put, 3, 4, Item("x"))
	violated(t, Queue(key, true), &s, "had not been put in")
}

func TestAnItemTakenTwiceIsCaught(t *testing.T) {
	s := ordinary()
	s.op("d", Take, 60, 61, Item("x"))
	violated(t, Queue(key, true), s, "taken 2 times")
}

func TestAnItemReceivedAgainAfterItsAckIsCaught(t *testing.T) {
	s := ordinary()
	s.op("c", Receive, 60, 61, Item("y"))
	violated(t, Queue(key, true), s, "came out again after its ack")
}

func TestAnItemThatTwoHaveIsCaught(t *testing.T) {
	var s story
	s.op("p", Put, 1, 2, Item("x"))
	first := s.op("c", Receive, 3, 4, Item("x"))
	second := s.op("d", Receive, 5, 6, Item("x"))
	s.op("c", Nack, 7, 8, ofID(first))
	s.op("d", Ack, 9, 10, ofID(second))
	violated(t, Queue(key, true), &s, "while c had it")
}

func TestAnItemAcknowledgedTwiceIsCaught(t *testing.T) {
	var s story
	s.op("p", Put, 1, 2, Item("x"))
	first := s.op("c", Receive, 3, 4, Item("x"))
	s.op("c", Lost, 5, 5, ofID(first))
	second := s.op("d", Receive, 6, 7, Item("x"))
	s.op("d", Ack, 8, 12, ofID(second))
	s.op("c", Ack, 9, 11, ofID(first))
	violated(t, Queue(key, true), &s, "acknowledged 2 times")
}

func TestALostItemIsCaughtOnceTheQueueIsDrained(t *testing.T) {
	s := ordinary()
	s.op("p", Put, 60, 61, Item("missing"))
	holds(t, Queue(key, false), s)
	violatedDirectly(t, Queue(key, true), s, "1 items lost")
}

func TestATakeThatMayHaveTakenAccountsForOneLostItem(t *testing.T) {
	s := ordinary()
	s.op("p", Put, 60, 61, Item("one"))
	s.op("c", Take, 62, 0, outcome(Open))
	holds(t, Queue(key, true), s)
	s.op("p", Put, 63, 64, Item("two"))
	violatedDirectly(t, Queue(key, true), s, "2 items lost")
}

func TestAnUnknownPutMayHaveHappenedOrNot(t *testing.T) {
	s := ordinary()
	s.op("p", Put, 60, 61, Item("perhaps"), outcome(Unknown))
	holds(t, Queue(key, true), s)
	s.op("c", Take, 90, 91, Item("perhaps"))
	holds(t, Queue(key, true), s)
}

func TestAnUnknownAckMayHaveHappenedOrNot(t *testing.T) {
	s := ordinary()
	s.op("p", Put, 60, 61, Item("w"))
	r := s.op("c", Receive, 62, 63, Item("w"))
	s.op("c", Ack, 64, 65, ofID(r), outcome(Unknown))
	holds(t, Queue(key, true), s)
	again := s.op("d", Receive, 70, 71, Item("w"))
	s.op("d", Ack, 72, 73, ofID(again))
	holds(t, Queue(key, true), s)
}

func TestAnItemThatOvertakesIsCaught(t *testing.T) {
	var s story
	s.op("p", Put, 1, 2, Item("x"))
	s.op("p", Put, 3, 4, Item("y"))
	s.op("c", Take, 5, 6, Item("y"))
	s.op("c", Take, 7, 8, Item("x"))
	violated(t, FIFO(key), &s, `"y" was put after "x"`)
	holds(t, Queue(key, true), &s)
}

func TestConcurrentPutsMayBeTakenInAnyOrder(t *testing.T) {
	var s story
	s.op("p", Put, 1, 4, Item("x"))
	s.op("q", Put, 3, 5, Item("y"))
	s.op("c", Take, 6, 7, Item("y"))
	s.op("c", Take, 8, 9, Item("x"))
	holds(t, FIFO(key), &s)
}

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

func TestMain(m *testing.M) { zktest.Main(m) }

const key = "/key"

// story is a history written by hand, in ms.
type story struct{ records []Record }

// op adds an operation and returns its ID.
func (s *story) op(client string, kind Kind, call, ret int, details ...Detail) int {
	r := Record{
		ID: len(s.records) + 1, Client: client, Key: key, Kind: kind, Outcome: OK,
		Call: time.Duration(call) * time.Millisecond, Return: time.Duration(ret) * time.Millisecond,
	}
	for _, d := range details {
		d(&r)
	}
	s.records = append(s.records, r)
	return r.ID
}

func ofID(id int) Detail       { return func(r *Record) { r.Of = id } }
func outcome(o Outcome) Detail { return func(r *Record) { r.Outcome = o } }

func (s *story) last() *Record { return &s.records[len(s.records)-1] }

// hold adds a grant with its end.
func (s *story) hold(client string, kind Kind, from, to int, end Kind, token int64) int {
	id := s.op(client, kind, from-1, from, Token(token))
	s.op(client, end, to, to+1, ofID(id))
	return id
}

// holds checks that a rule is content with a story, and violated catches a
// planted violation directly and, if the rule has a model, by the model too.
func holds(t *testing.T, rule Rule, s *story) {
	t.Helper()
	j := rule.Judge(s.records)
	require.Empty(t, j.Violations)
	require.Empty(t, j.pictures)
	require.Zero(t, j.Undecided)
}

func violated(t *testing.T, rule Rule, s *story, words string) {
	t.Helper()
	j := rule.Judge(s.records)
	require.NotEmpty(t, j.Violations)
	require.Contains(t, j.Violations[0].Text, words)
	require.NotEmpty(t, j.Violations[0].Records)
	if rule.parts != nil {
		require.NotEmpty(t, j.pictures, "the model allows it")
	}
}

// violatedDirectly is for what models do not cover.
func violatedDirectly(t *testing.T, rule Rule, s *story, words string) {
	t.Helper()
	rule.parts = nil
	violated(t, rule, s, words)
}
