package main

// semaphore is the semaphore with all its watches.
var semaphore = []mutant{
	off("semaphore: the watch on the leases", in(sema, "TestALeaseThatIsReleased"),
		"Semaphore.await", `names, err = v.Dir(s.layout.Leases.Dir)`, `names, err = s.client.Children(ctx, s.layout.Leases.Dir)`),
	off("semaphore: the watch on the limit", in(sema, "TestAWaiterHearsThatTheLimit"),
		"Semaphore.await", `s.look(ctx, v, len(leases))`, `s.agree(ctx, len(leases))`),
	off("semaphore: leases are counted again after the own was made", in(sema, "TestALeaseThatIsReleased"),
		"Semaphore.room", `return len(names)-younger <= limit, nil`, `return len(names)-younger <= limit || true, nil`),
	off("semaphore: the queue", in(sema, "TestTwoThatWantAllLeases"),
		"Semaphore.attempt", `queue, err = enter(ctx, coord.Spec{Line: s.layout.Queue, Kind: "lock"}, coord.First)`,
		`queue, err = enter(ctx, coord.Spec{Line: s.layout.Queue, Kind: "lock"}, nil)`),
	off("semaphore: programs that disagree about the limit are refused", in(sema, "TestProgramsThatDisagree"),
		"Semaphore.look", `case s.limit != Stored && s.limit != limit:`, `case false:`),
	off("semaphore: the place in the queue lasts until Kazoo can count the lease", in(sema, "TestAPlaceInTheQueueThatWasLost"),
		"Semaphore.take", `_, err = queue.Txn(ctx)`, ""),
	off("semaphore: every child counts", in(sema, "TestAChildOfAnUnknownShape"),
		"Semaphore.room", `return len(names)-younger <= limit, nil`, `return len(line)-younger <= limit, nil`),
	off("semaphore: the watch on the place in the queue", in(sema, "TestAWaiterThatLosesItsPlace"),
		"Semaphore.await", `v.Until(queue.Done())`, ""),
	off("semaphore: the own leases are among those that are counted", in(sema, "TestAWaiterThatLosesItsLease"),
		"Semaphore.room", `return false, fmt.Errorf("lease %s: %w", own, coord.ErrNodeDeleted)`, `return false, nil`),
	off("a lease that was made to be the only one is not granted beside another", in(sema, "TestTwoLeasesDoNotBoth"),
		"Semaphore.await", `made == 1 && limit > 1 {`, `made == 1 && limit > 1 && false {`),
	off("semaphore: a call that has waited is not refused when it queues again", in(sema, "TestF56ACallThatHasWaited"),
		"Semaphore.acquire", `ctx = coord.Patient(ctx)`, ""),
}
