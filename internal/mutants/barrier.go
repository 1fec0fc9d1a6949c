package main

// gates is what keeps a barrier shut.
var gates = []mutant{
	off("barrier: a node that the servers may delete is none", in(gate, "TestTheParentOfAnotherBarrier"),
		"other", `case stat.Cversion != 0:`, `case false:`),
	off("barrier: a node with children is none", in(gate, "TestWhatIsNoBarrier"),
		"other", `case stat.Children > 0:`, `case false:`),
	off("barrier: a node of a session is none", in(gate, "TestWhatIsNoBarrier"),
		"other", `case stat.Owner != 0:`, `case false:`),
	off("barrier: a node that has gone meanwhile is made again", in(gate, "TestANodeThatIsDeletedWhile"),
		"Barrier.Set", `continue // removed since`, `return nil`),
}
