package main

// locks is which claims exclude each other, and what is refused instead of a
// deadlock.
var locks = []mutant{
	{
		guard: "shared lock: a mutex is a writer to readers",
		edit: edit{
			decl: "readRule",
			old:  `if ahead[i].Kind != "read" {`,
			new:  `if ahead[i].Kind == "write" {`,
		},
		tests: []suite{{pkg: rwlock, run: "TestAMutexOnTheSamePath"}},
	},
	{
		guard: "shared lock: an upgrade is refused",
		edit: edit{
			decl: "Client.inside",
			old:  `case spec.Exclusive && !held.claim.shape.Exclusive:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: coord, run: "TestAnExclusiveClaimInside"}},
	},
	{
		guard: "inside of a hold: what would wait for that hold is refused",
		edit: edit{
			decl: "Client.Acquire",
			old:  `case outer != nil:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: lock, run: "TestADoInsideADo"}},
	},
	{
		guard: "shared lock: a hold with other handles is not downgraded",
		edit: edit{
			decl: "Hold.mayEnd",
			old:  `case len(cl.holds) > 1:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: rwlock, run: "TestADowngradeThatCannotBe"}},
	},
	{
		guard: "multi-lock: one order for all",
		edit: edit{
			decl: "NewMulti",
			old:  `return strings.Compare(a.Path(), b.Path())`,
			new:  `return 0 * strings.Compare(a.Path(), b.Path())`,
		},
		tests: []suite{{pkg: lock, run: "TestAMultiLockHoldsLocksOfAllKinds"}},
	},
	{
		guard: "multi-lock: all or none",
		edit: edit{
			decl: "Multi.all",
			old:  `return nil, lost, release(ctx, holds, err)`,
			new:  `return nil, lost, err`,
		},
		tests: []suite{{pkg: lock, run: "TestAMultiLockThatCannotHaveAll"}},
	},
	{
		guard: "multi-lock: a lock that is lost ends the wait for the others",
		edit: edit{
			decl: "Multi.all",
			old:  `waiting = h.Context(coord.Patient(waiting))`,
			new:  `waiting = coord.Patient(waiting)`,
		},
		tests: []suite{{pkg: lock, run: "TestAMultiLockThatWaitsAcquiresAgain"}},
	},
	{
		guard: "local queue: one turn at a time",
		edit: edit{
			decl: "local.take",
			old:  `q.taking, q.taken = true, q.taken+1`,
			new:  `q.taken++`,
		},
		tests: []suite{{pkg: lock, run: "TestALocalQueue"}},
	},
	{
		guard: "local queue: it gives way to others",
		edit: edit{
			decl: "local.spent",
			old:  `q.others && q.used() }`,
			new:  `false }`,
		},
		tests: []suite{{pkg: lock, run: "TestALocalQueueGivesWay"}},
	},
	{
		guard: "local queue: a place that nobody waits in is given up",
		edit: edit{
			decl: "local.advance",
			old:  `case q.asking && len(q.waiting) == 0:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: lock, run: "TestALocalQueueIsLeft"}},
	},
	{
		guard: "local queue: a turn that came too late is given back",
		edit: edit{
			decl: "local.acquire",
			old:  `	if w.turn != nil { // set`,
			new:  `	if false { // set`,
		},
		tests: []suite{{pkg: lock, run: "TestATurnThatComesTooLate"}},
	},
	{
		guard: "local queue: a request ends the turns of a node",
		edit: edit{
			decl: "local.spent",
			old:  `isClosed(q.revoked) || q.others && q`,
			new:  `q.others && q`,
		},
		tests: []suite{{pkg: lock, run: "TestALocalQueueObeys"}},
	},
	{
		guard: "local queue: what is not known counts as others",
		edit: edit{
			decl: "local.advance",
			old:  `if !q.known && q.used() {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: lock, run: "TestALocalQueueGivesWayToThoseItDoesNotKnow"}},
	},
	{
		guard: "local queue: a try takes what is not known for others",
		edit: edit{
			decl: "local.try",
			old:  ` && (q.known || !q.used())`,
			new:  ``,
		},
		tests: []suite{{pkg: lock, run: "TestF61"}},
	},
	{
		guard: "local queue: what was known of a hold goes with it",
		edit: edit{
			decl: "local.adopt",
			old: `	q.drop()
`,
			new: ``,
		},
		tests: []suite{{pkg: lock, run: "TestALockTakenByATryYields"}},
	},
	{
		guard: "local queue: those that have waited are not refused",
		edit: edit{
			decl: "local.ask",
			old:  `q.waiting[0].done != nil`,
			new:  `false`,
		},
		tests: []suite{{pkg: lock, run: "TestF56ACallThatHasWaited"}},
	},
	{
		guard: "multi-lock: it is not refused after a wait",
		edit: edit{
			decl: "Multi.all",
			old:  `coord.Patient(waiting)`,
			new:  `waiting`,
		},
		tests: []suite{{pkg: lock, run: "TestF56AMultiLock"}},
	},
	{
		guard: "multi-lock: it is not refused when it begins again",
		edit: edit{
			decl: "Multi.Acquire",
			old:  `ctx = coord.Patient(ctx)`,
			new:  ``,
		},
		tests: []suite{{pkg: lock, run: "TestF56AMultiLock"}},
	},
	{
		guard: "lingering: newcomers are noticed",
		edit: edit{
			decl: "local.watch",
			old:  `others = q.contended(names, path.Base(h.Node()))`,
			new:  `others = false && q.contended(names, path.Base(h.Node()))`,
		},
		tests: []suite{{pkg: lock, run: "TestALockThatLingersYields"}},
	},
	{
		guard: "lingering: newcomers of the other dialect are noticed",
		edit: edit{
			decl: "local.contended",
			old:  `line.AnyDialect = true`,
			new:  ``,
		},
		tests: []suite{{pkg: lock, run: "TestALockThatLingersYields"}},
	},
	{
		guard: "lingering: a request to give up is noticed",
		edit: edit{
			decl: "local.watch",
			old:  `v.Until(revoked)`,
			new:  ``,
		},
		tests: []suite{{pkg: lock, run: "TestALockThatLingersYields"}},
	},
	{
		guard: "lingering: it ends",
		edit: edit{
			decl: "local.rest",
			old:  `left := q.linger - time.Since(q.freed)`,
			new:  `left := q.linger`,
		},
		tests: []suite{{pkg: lock, run: "TestALockThatLingersIsTakenAgain"}},
	},
	{
		guard: "lingering: it begins anew after each turn",
		edit: edit{
			decl: "local.rest",
			old:  `		case left > 0:`,
			new:  `		case false:`,
		},
		tests: []suite{{pkg: lock, run: "TestALockThatLingersIsTakenAgain"}},
	},
	{
		guard: "Nest looks at the window",
		edit: edit{
			decl: "Hold.Nest",
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
			decl: "Hold.tellEnded",
			old:  `			go ended()`,
			new:  ``,
		},
		tests: []suite{{pkg: lock, run: "TestALocalQueueThatLosesItsNode"}},
	},
	{
		guard: "local queue: a turn lasts as long as the handles made inside of it",
		edit: edit{
			decl: "Hold.another",
			old:  `return newHold(cl, h.in), nil`,
			new:  `return newHold(cl, nil), nil`,
		},
		tests: []suite{{pkg: lock, run: "TestATurnLasts"}},
	},
	{
		guard: "local queue: a turn lasts as long as the nests inside of it",
		edit: edit{
			decl: "Hold.another",
			old:  `&nest{in: h.in, ended: ended}`,
			new:  `&nest{ended: ended}`,
		},
		tests: []suite{{pkg: lock, run: "TestATurnLasts"}},
	},
	{
		guard: "local queue: a turn lasts until its transactions are answered",
		edit: edit{
			decl: "Hold.during",
			old: `	cl.mu.Unlock()
	err := transact()
	cl.mu.Lock()
	cl.unsure = cl.unsure || errors.Is(err, ErrUnconfirmed)
	over := h.in.unuse()
`,
			new: `	over := h.in.unuse()
	cl.mu.Unlock()
	err := transact()
	cl.mu.Lock()
	cl.unsure = cl.unsure || errors.Is(err, ErrUnconfirmed)
`,
		},
		tests: []suite{{pkg: lock, run: "TestATurnLasts"}},
	},
	{
		guard: "local queue: a node is given up after a transaction of unknown outcome",
		edit: edit{
			decl: "Hold.another",
			old:  `case cl.unsure:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: lock, run: "TestANodeIsGivenUpAfter"}},
	},
	{
		guard: "local queue: nothing is attached to a turn",
		edit: edit{
			decl: "Hold.Attach",
			old:  `err = errNested`,
			new:  ``,
		},
		tests: []suite{{pkg: lock, run: "TestF62ATurnDoesNotDecide"}},
	},
	{
		guard: "a nest does not end the hold by a transaction",
		edit: edit{
			decl: "Hold.mayEnd",
			old:  `case h.in != nil:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: coord, run: "TestANestThatIsTheLast"}},
	},
}
