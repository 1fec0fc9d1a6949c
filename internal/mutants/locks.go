package main

// locks is which claims exclude each other, and what is refused instead of a
// deadlock.
var locks = []mutant{
	{
		guard: "shared lock: a mutex is a writer to readers",
		edit: edit{
			file: "coord/rwlock/rwlock.go",
			old:  `if ahead[i].Kind != "read" {`,
			new:  `if ahead[i].Kind == "write" {`,
		},
		tests: []suite{{pkg: rwlock, run: "TestAMutexOnTheSamePath"}},
	},
	{
		guard: "shared lock: an upgrade is refused",
		edit: edit{
			file: "coord/acquire.go",
			old:  `case spec.Exclusive && !held.claim.shape.Exclusive:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: coord, run: "TestAnExclusiveClaimInside"}},
	},
	{
		guard: "inside of a hold: what would wait for that hold is refused",
		edit: edit{
			file: "coord/acquire.go",
			old:  `case outer != nil:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: lock, run: "TestADoInsideADo"}},
	},
	{
		guard: "shared lock: a hold with other handles is not downgraded",
		edit: edit{
			file: "coord/releasetxn.go",
			old:  `case len(cl.holds) > 1:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: rwlock, run: "TestADowngradeThatCannotBe"}},
	},
	{
		guard: "multi-lock: one order for all",
		edit: edit{
			file: "coord/lock/multi.go",
			old:  `return strings.Compare(a.Path(), b.Path())`,
			new:  `return 0 * strings.Compare(a.Path(), b.Path())`,
		},
		tests: []suite{{pkg: lock, run: "TestAMultiLockHoldsLocksOfAllKinds"}},
	},
	{
		guard: "multi-lock: all or none",
		edit: edit{
			file: "coord/lock/multi.go",
			old:  `return nil, lost, release(ctx, holds, err)`,
			new:  `return nil, lost, err`,
		},
		tests: []suite{{pkg: lock, run: "TestAMultiLockThatCannotHaveAll"}},
	},
	{
		guard: "multi-lock: a lock that is lost ends the wait for the others",
		edit: edit{
			file: "coord/lock/multi.go",
			old:  `waiting = h.Context(waiting)`,
			new:  ``,
		},
		tests: []suite{{pkg: lock, run: "TestAMultiLockThatWaitsAcquiresAgain"}},
	},
	{
		guard: "local queue: one turn at a time",
		edit: edit{
			file: "coord/lock/local.go",
			old:  `q.taking, q.taken = true, q.taken+1`,
			new:  `q.taken++`,
		},
		tests: []suite{{pkg: lock, run: "TestALocalQueue"}},
	},
	{
		guard: "local queue: it gives way to others",
		edit: edit{
			file: "coord/lock/local.go",
			old:  `q.others && q.used() }`,
			new:  `false }`,
		},
		tests: []suite{{pkg: lock, run: "TestALocalQueueGivesWay"}},
	},
	{
		guard: "local queue: a place that nobody waits in is given up",
		edit: edit{
			file: "coord/lock/local.go",
			old:  `case q.asking && len(q.waiting) == 0:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: lock, run: "TestALocalQueueIsLeft"}},
	},
	{
		guard: "local queue: a turn that came too late is given back",
		edit: edit{
			file: "coord/lock/local.go",
			old:  `	if w.turn != nil { // set`,
			new:  `	if false { // set`,
		},
		tests: []suite{{pkg: lock, run: "TestATurnThatComesTooLate"}},
	},
	{
		guard: "local queue: a request ends the turns of a node",
		edit: edit{
			file: "coord/lock/local.go",
			old:  `isClosed(q.revoked) || q.others && q`,
			new:  `q.others && q`,
		},
		tests: []suite{{pkg: lock, run: "TestALocalQueueObeys"}},
	},
	{
		guard: "local queue: what is not known counts as others",
		edit: edit{
			file: "coord/lock/local.go",
			old:  `if !q.known && q.used() {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: lock, run: "TestALocalQueueGivesWayToThoseItDoesNotKnow"}},
	},
	{
		guard: "lingering: newcomers are noticed",
		edit: edit{
			file: "coord/lock/others.go",
			old:  `others = q.contended(names, path.Base(h.Node()))`,
			new:  `others = false && q.contended(names, path.Base(h.Node()))`,
		},
		tests: []suite{{pkg: lock, run: "TestALockThatLingersYields"}},
	},
	{
		guard: "lingering: newcomers of the other dialect are noticed",
		edit: edit{
			file: "coord/lock/others.go",
			old:  `line.AnyDialect = true`,
			new:  ``,
		},
		tests: []suite{{pkg: lock, run: "TestALockThatLingersYields"}},
	},
	{
		guard: "lingering: a request to give up is noticed",
		edit: edit{
			file: "coord/lock/others.go",
			old:  `v.Until(revoked)`,
			new:  ``,
		},
		tests: []suite{{pkg: lock, run: "TestALockThatLingersYields"}},
	},
	{
		guard: "lingering: it ends",
		edit: edit{
			file: "coord/lock/local.go",
			old:  `left := q.linger - time.Since(q.freed)`,
			new:  `left := q.linger`,
		},
		tests: []suite{{pkg: lock, run: "TestALockThatLingersIsTakenAgain"}},
	},
	{
		guard: "lingering: it begins anew after each turn",
		edit: edit{
			file: "coord/lock/local.go",
			old:  `		case left > 0:`,
			new:  `		case false:`,
		},
		tests: []suite{{pkg: lock, run: "TestALockThatLingersIsTakenAgain"}},
	},
	{
		guard: "Nest looks at the window",
		edit: edit{
			file: "coord/hold.go",
			old: `	if err := h.Err(); err != nil {
		return nil, opError("nest"`,
			new: `	if err := error(nil); err != nil {
		return nil, opError("nest"`,
		},
		tests: []suite{{pkg: coord, run: "TestANestedHold"}},
	},
	{
		guard: "local queue: a lost turn sends the others to the line",
		edit: edit{
			file: "coord/hold.go",
			old:  `		go h.ended()`,
			new:  ``,
		},
		tests: []suite{{pkg: lock, run: "TestALocalQueueThatLosesItsNode"}},
	},
}
