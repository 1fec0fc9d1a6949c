package main

// bySimulation runs ten times the seeds of CI, since the faults that show that
// a guard is missing are rare.
var bySimulation = suites{{pkg: simulation, run: "WhateverGoesWrong", flag: "-seeds=400"}}

// judges: guards whose absence the simulation itself must notice. For the
// others, a test made for them does.
var judges = []mutant{
	off("simulation: the window's end ends holds", bySimulation,
		"Client.lossBy", `case change == session.WindowClosed:`, `case false:`),
	off("simulation: a writer waits for readers", bySimulation,
		"writeRule", `func writeRule(ahead []coord.Contender) (wait []int, granted bool) {
	if len(ahead) == 0 {`,
		`func writeRule(ahead []coord.Contender) (wait []int, granted bool) {
	if len(ahead) == 0 || ahead[len(ahead)-1].Kind == "read" {`),
	off("simulation: leases within the limit", bySimulation,
		"Semaphore.room", `return len(names)-younger <= limit, nil`, `return len(names)-younger <= limit+1, nil`),
	off("simulation: a hold's transaction checks its node", bySimulation,
		"Hold.txn", `append([]Op{CheckOp(cl.path(), cl.node.Version())}, ops...)`, `append([]Op{CheckOp("/", -1)}, ops...)`),
	off("simulation: the hold's own watch", bySimulation,
		"Client.join", `	cl.node.WatchSoon()`, ""),
	off("simulation: a lost create is looked for", bySimulation,
		"Node.Create", `if found, failure := n.recover(); found || failure != nil {`,
		`if found, failure := false, error(nil); found || failure != nil {`),
	off("simulation: a delete is repeated", bySimulation,
		"Node.Delete", `case n.sess.Err() != nil, IsLost(err):`, `case n.sess.Err() != nil, IsLost(err): return nil`),
	off("simulation: the witness's version", bySimulation,
		"witness.try", `all := append([]Op{SetOp(w.path(), nil, w.version)}, ops...)`,
		`all := append([]Op{SetOp(w.path(), nil, -1)}, ops...)`),
	off("simulation: a witness of another version after a lost reply is the transaction's work", bySimulation,
		"witness.try", `case refused != nil && lost && errors.Is(err, ErrBadVersion):`, `case false:`),
	off("simulation: a listing after a writer's going", bySimulation,
		"Line.mayReturn", `return dialect.Replaceable(gone.Dialect, gone.Kind, l.has(dialect.Read))`, `return false`),
	off("simulation: what a lost leader returns does not end Run", bySimulation,
		"serve", `if lost {`, `if lost && false {`),
}
