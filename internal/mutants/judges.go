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
			decl: "Client.lossBy",
			old:  `case change == session.WindowClosed:`,
			new:  `case false:`,
		},
		tests: []suite{bySimulation},
	},
	{
		guard: "simulation: a writer waits for readers",
		edit: edit{
			decl: "writeRule",
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
			decl: "Semaphore.room",
			old:  `return len(names)-younger <= limit, nil`,
			new:  `return len(names)-younger <= limit+1, nil`,
		},
		tests: []suite{bySimulation},
	},
	{
		guard: "simulation: a hold's transaction checks its node",
		edit: edit{
			decl: "Hold.txn",
			old:  `append([]Op{CheckOp(cl.path(), cl.node.Version())}, ops...)`,
			new:  `append([]Op{CheckOp("/", -1)}, ops...)`,
		},
		tests: []suite{bySimulation},
	},
	{
		guard: "simulation: the hold's own watch",
		edit: edit{
			decl: "Client.join",
			old:  `	cl.node.WatchSoon()`,
			new:  ``,
		},
		tests: []suite{bySimulation},
	},
	{
		guard: "simulation: a lost create is looked for",
		edit: edit{
			decl: "Node.Create",
			old:  `if found, failure := n.recover(); found || failure != nil {`,
			new:  `if found, failure := false, error(nil); found || failure != nil {`,
		},
		tests: []suite{bySimulation},
	},
	{
		guard: "simulation: a delete is repeated",
		edit: edit{
			decl: "Node.Delete",
			old:  `case n.sess.Err() != nil, IsLost(err):`,
			new:  `case n.sess.Err() != nil, IsLost(err): return nil`,
		},
		tests: []suite{bySimulation},
	},
	{
		guard: "simulation: the witness's version",
		edit: edit{
			decl: "witness.try",
			old:  `all := append([]Op{SetOp(w.path(), nil, w.version)}, ops...)`,
			new:  `all := append([]Op{SetOp(w.path(), nil, -1)}, ops...)`,
		},
		tests: []suite{bySimulation},
	},
	{
		guard: "simulation: a witness of another version after a lost reply is the transaction's work",
		edit: edit{
			decl: "witness.try",
			old:  `case refused != nil && lost && errors.Is(err, ErrBadVersion):`,
			new:  `case false:`,
		},
		tests: []suite{bySimulation},
	},
	{
		guard: "simulation: a listing after a writer's going",
		edit: edit{
			decl: "Line.mayReturn",
			old:  `return dialect.Replaceable(gone.Dialect, gone.Kind, l.has(dialect.Read))`,
			new:  `return false`,
		},
		tests: []suite{bySimulation},
	},
	{
		guard: "simulation: what a lost leader returns does not end Run",
		edit: edit{
			decl: "serve",
			old:  `if lost {`,
			new:  `if lost && false {`,
		},
		tests: []suite{bySimulation},
	},
}
