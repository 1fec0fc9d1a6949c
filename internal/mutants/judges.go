package main

// bySimulation runs ten times the seeds of CI, since the faults that show that
// a guard is missing are rare.
var bySimulation = suite{pkg: simulation, run: "WhateverGoesWrong", flag: "-seeds=400"}

// judges: guards whose absence the simulation itself must notice. For the
// others, a test made for them does.
var judges = []mutant{
	{
		guard: "simulation: the window's end ends holds",
		edit: edit{
			file: "coord/own.go",
			old:  `case change == session.WindowClosed:`,
			new:  `case false:`,
		},
		tests: []suite{bySimulation},
	},
	{
		guard: "simulation: a writer waits for readers",
		edit: edit{
			file: "coord/rwlock/rwlock.go",
			old: `func writeRule(ahead []coord.Contender) (wait []int, granted bool) {
	if len(ahead) == 0 {`,
			new: `func writeRule(ahead []coord.Contender) (wait []int, granted bool) {
	if len(ahead) == 0 || ahead[len(ahead)-1].Kind == "read" {`,
		},
		tests: []suite{bySimulation},
	},
	{
		guard: "simulation: leases within the limit",
		edit: edit{
			file: "coord/semaphore/acquire.go",
			old:  `return len(names)-younger <= limit, nil`,
			new:  `return len(names)-younger <= limit+1, nil`,
		},
		tests: []suite{bySimulation},
	},
	{
		guard: "simulation: a hold's transaction checks its node",
		edit: edit{
			file: "coord/hold.go",
			old:  `append([]Op{CheckOp(cl.Node(), cl.node.Version())}, ops...)`,
			new:  `append([]Op{CheckOp("/", -1)}, ops...)`,
		},
		tests: []suite{bySimulation},
	},
	{
		guard: "simulation: the hold's own watch",
		edit: edit{
			file: "coord/claim.go",
			old:  `	cl.watchOwnSoon()`,
			new:  ``,
		},
		tests: []suite{bySimulation},
	},
}
