package main

// semaphore is the semaphore with all its watches.
var semaphore = []mutant{
	{
		guard: "semaphore: the watch on the leases",
		edit: edit{
			decl: "Semaphore.await",
			old:  `names, err = v.Dir(s.layout.leases.Dir)`,
			new:  `names, err = s.client.Children(ctx, s.layout.leases.Dir)`,
		},
		tests: []suite{{pkg: sema, run: "TestALeaseThatIsReleased"}},
	},
	{
		guard: "semaphore: the watch on the limit",
		edit: edit{
			decl: "Semaphore.await",
			old:  `s.look(ctx, v, len(leases))`,
			new:  `s.agree(ctx, len(leases))`,
		},
		tests: []suite{{pkg: sema, run: "TestAWaiterHearsThatTheLimit"}},
	},
	{
		guard: "semaphore: leases are counted again after the own was made",
		edit: edit{
			decl: "Semaphore.room",
			old:  `return len(names)-younger <= limit, nil`,
			new:  `return len(names)-younger <= limit || true, nil`,
		},
		tests: []suite{{pkg: sema, run: "TestALeaseThatIsReleased"}},
	},
	{
		guard: "semaphore: the queue",
		edit: edit{
			decl: "Semaphore.attempt",
			old:  `queue, err = enter(ctx, coord.Spec{Line: s.layout.queue, Kind: "lock"}, coord.First)`,
			new:  `queue, err = enter(ctx, coord.Spec{Line: s.layout.queue, Kind: "lock"}, nil)`,
		},
		tests: []suite{{pkg: sema, run: "TestTwoThatWantAllLeases"}},
	},
	{
		guard: "semaphore: programs that disagree about the limit are refused",
		edit: edit{
			decl: "Semaphore.look",
			old:  `case s.limit != Stored && s.limit != limit:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: sema, run: "TestProgramsThatDisagree"}},
	},
	{
		guard: "semaphore: the place in the queue lasts until Kazoo can count the lease",
		edit: edit{
			decl: "Semaphore.take",
			old:  `_, err = queue.Txn(ctx)`,
			new:  ``,
		},
		tests: []suite{{pkg: sema, run: "TestAPlaceInTheQueueThatWasLost"}},
	},
	{
		guard: "semaphore: every child counts",
		edit: edit{
			decl: "Semaphore.room",
			old:  `return len(names)-younger <= limit, nil`,
			new:  `return len(line)-younger <= limit, nil`,
		},
		tests: []suite{{pkg: sema, run: "TestAChildOfAnUnknownShape"}},
	},
	{
		guard: "semaphore: the watch on the place in the queue",
		edit: edit{
			decl: "Semaphore.await",
			old:  `v.Until(queue.Done())`,
			new:  ``,
		},
		tests: []suite{{pkg: sema, run: "TestAWaiterThatLosesItsPlace"}},
	},
	{
		guard: "semaphore: the own leases are among those that are counted",
		edit: edit{
			decl: "Semaphore.room",
			old:  `return false, fmt.Errorf("lease %s: %w", own, coord.ErrNodeDeleted)`,
			new:  `return false, nil`,
		},
		tests: []suite{{pkg: sema, run: "TestAWaiterThatLosesItsLease"}},
	},
	{
		guard: "a lease that was made to be the only one is not granted beside another",
		edit: edit{
			decl: "Semaphore.await",
			old:  `made == 1 && limit > 1 {`,
			new:  `made == 1 && limit > 1 && false {`,
		},
		tests: []suite{{pkg: sema, run: "TestTwoLeasesDoNotBoth"}},
	},
	{
		guard: "semaphore: a call that has waited is not refused when it queues again",
		edit: edit{
			decl: "Semaphore.acquire",
			old:  `ctx = coord.Patient(ctx)`,
			new:  ``,
		},
		tests: []suite{{pkg: sema, run: "TestF56ACallThatHasWaited"}},
	},
}
