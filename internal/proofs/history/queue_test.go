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

func TestAQueueAtWorkIsAllowed(t *testing.T) { holds(t, Queue(key, true), ordinary()) }

func TestAQueueThatBreaksItsPromisesIsCaught(t *testing.T) {
	queue := Queue(key, true)
	caught(t, ordinary, map[string]breach{
		"an item that was never put": {queue, "had not been put in", func(s *story) {
			s.op("c", Take, 60, 61, Item("ghost"))
		}},
		"an item that comes out before it was put": {queue, "had not been put in", func(s *story) {
			s.op("c", Take, 60, 61, Item("w"))
			s.op("p", Put, 62, 63, Item("w"))
		}},
		"an item taken twice": {queue, "taken 2 times", func(s *story) {
			s.op("d", Take, 60, 61, Item("x"))
		}},
		"an item received again after its ack": {queue, "came out again after its ack", func(s *story) {
			s.op("c", Receive, 60, 61, Item("y"))
		}},
		"an item that two have": {queue, "while c had it", func(s *story) {
			s.op("p", Put, 60, 61, Item("w"))
			first := s.op("c", Receive, 62, 63, Item("w"))
			second := s.op("d", Receive, 64, 65, Item("w"))
			s.op("c", Nack, 66, 67, ofID(first))
			s.op("d", Ack, 68, 69, ofID(second))
		}},
		"an item acknowledged twice": {queue, "acknowledged 2 times", func(s *story) {
			s.op("p", Put, 60, 61, Item("w"))
			first := s.op("c", Receive, 62, 63, Item("w"))
			s.op("c", Lost, 64, 64, ofID(first))
			second := s.op("d", Receive, 65, 66, Item("w"))
			s.op("d", Ack, 67, 71, ofID(second))
			s.op("c", Ack, 68, 70, ofID(first))
		}},
	})
}

func TestALostItemIsCaughtOnceTheQueueIsDrained(t *testing.T) {
	s := ordinary()
	s.op("p", Put, 60, 61, Item("missing"))
	holds(t, Queue(key, false), s)
	violated(t, direct(Queue(key, true)), s, "1 items lost")
}

func TestATakeThatMayHaveTakenAccountsForOneLostItem(t *testing.T) {
	s := ordinary()
	s.op("p", Put, 60, 61, Item("one"))
	s.op("c", Take, 62, 0, outcome(Open))
	holds(t, Queue(key, true), s)
	s.op("p", Put, 63, 64, Item("two"))
	violated(t, direct(Queue(key, true)), s, "2 items lost")
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

// member adds the passage of a member through a round.
func (s *story) member(client string, enter, entered, leave, left int, verdict string, round Detail, more ...Detail) {
	id := s.op(client, Enter, enter, entered, append(more, round)...)
	s.op(client, Leave, leave, left, ofID(id), Verdict(verdict))
}

// meeting adds a round of two, from the given moment on, which takes 20 ms.
func (s *story) meeting(number int64, at int) {
	s.member("a", at, at+5, at+10, at+18, Complete, Round(number))
	s.member("b", at+2, at+6, at+15, at+19, Complete, Round(number))
}

func TestRoundsThatFollowOneAnotherAreAllowed(t *testing.T) {
	var s story
	s.meeting(1, 0)
	s.meeting(2, 30)
	holds(t, Rounds(key, 2), &s)
}

func TestAMemberThatDiesEndsItsPartInTheRound(t *testing.T) {
	var s story
	s.member("a", 0, 5, 7, 30, "b died", Round(1))
	b := s.op("b", Enter, 2, 6, Round(1))
	s.op("b", Lost, 8, 8, ofID(b))
	holds(t, Rounds(key, 2), &s)
}

func TestRoundsThatBreakTheirPromisesAreCaught(t *testing.T) {
	rounds := Rounds(key, 2)
	caught(t, nothing, map[string]breach{
		"one that opens before all have come": {rounds, "when only 1 had come", func(s *story) {
			s.member("a", 0, 5, 10, 18, "", Round(1))
			s.member("b", 6, 8, 12, 19, "", Round(1))
		}},
		"one with too many members": {rounds, "has 3 members", func(s *story) {
			s.meeting(1, 0)
			s.member("c", 0, 7, 14, 20, Complete, Round(1))
		}},
		"a member who leaves before the others": {rounds, "let a go", func(s *story) {
			s.member("a", 0, 5, 7, 9, "", Round(1))
			s.member("b", 2, 6, 20, 21, "", Round(1))
		}},
		"a member who leaves though another never does": {rounds, "let a go", func(s *story) {
			s.member("a", 0, 5, 7, 9, "", Round(1))
			s.op("b", Enter, 2, 6, Round(1))
		}},
		"different verdicts": {direct(rounds), `as "a died" for b`, func(s *story) {
			s.member("a", 0, 5, 7, 12, Complete, Round(1))
			s.member("b", 2, 6, 8, 12, "a died", Round(1))
		}},
		"mixed rounds": {direct(rounds), "was opened at 13ms while round 1 lasted", func(s *story) {
			s.meeting(1, 0)
			s.meeting(2, 8)
		}},
		"one that is smaller than it says": {direct(rounds), "is one of 1 members", func(s *story) {
			s.member("a", 0, 5, 10, 18, Complete, Round(1), Weight(1))
			s.member("b", 2, 6, 15, 19, Complete, Round(1), Weight(1))
		}},
		"a complete one whose member was lost": {direct(rounds), "had not left", func(s *story) {
			s.member("a", 0, 5, 10, 18, Complete, Round(1))
			b := s.op("b", Enter, 2, 6, Round(1))
			s.op("b", Lost, 8, 8, ofID(b))
		}},
	})
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

// direct is a rule without its model, for what models do not cover.
func direct(rule Rule) Rule {
	rule.parts = nil
	return rule
}

// breach is a promise that a story breaks with some more operations, and what
// the rule says of it.
type breach struct {
	rule  Rule
	words string
	more  func(s *story)
}

// caught checks that stories with one breach each are caught.
func caught(t *testing.T, begin func() *story, breaches map[string]breach) {
	t.Helper()
	for name, b := range breaches {
		t.Run(name, func(t *testing.T) {
			s := begin()
			b.more(s)
			violated(t, b.rule, s, b.words)
		})
	}
}

func nothing() *story { return &story{} }
