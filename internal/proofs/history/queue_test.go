package history

import "testing"

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
