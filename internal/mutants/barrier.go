package main

// gates is what keeps a barrier shut.
var gates = []mutant{
	{
		guard: "barrier: a node that the servers may delete is none",
		edit: edit{
			decl: "other",
			old:  `case stat.Cversion != 0:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: gate, run: "TestTheParentOfAnotherBarrier"}},
	},
	{
		guard: "barrier: a node with children is none",
		edit: edit{
			decl: "other",
			old:  `case stat.Children > 0:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: gate, run: "TestWhatIsNoBarrier"}},
	},
	{
		guard: "barrier: a node of a session is none",
		edit: edit{
			decl: "other",
			old:  `case stat.Owner != 0:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: gate, run: "TestWhatIsNoBarrier"}},
	},
	{
		guard: "barrier: a node that has gone meanwhile is made again",
		edit: edit{
			decl: "Barrier.Set",
			old:  `continue // removed since`,
			new:  `return nil`,
		},
		tests: []suite{{pkg: gate, run: "TestANodeThatIsDeletedWhile"}},
	},
}
