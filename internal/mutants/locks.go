package main

// locks is which claims exclude each other, and what is refused instead of a
// deadlock.
var locks = []mutant{
	off("shared lock: a mutex is a writer to readers", in(rwlock, "TestAMutexOnTheSamePath"),
		"readRule", `if ahead[i].Kind != "read" {`, `if ahead[i].Kind == "write" {`),
	off("shared lock: an upgrade is refused", in(coord, "TestAnExclusiveClaimInside"),
		"Spec.inside", `case s.Exclusive && !held.claim.spec.Exclusive:`, `case false:`),
	off("inside of a hold: what would wait for that hold is refused", in(lock, "TestADoInsideADo"),
		"Client.Acquire", `c.acquireInLine(ctx, spec, rule, outer != nil)`, `c.acquireInLine(ctx, spec, rule, false)`),
	off("shared lock: a hold with other handles is not downgraded", in(rwlock, "TestADowngradeThatCannotBe"),
		"Hold.mayEnd", `case len(cl.holds) > 1:`, `case false:`),
	off("multi-lock: one order for all", in(lock, "TestAMultiLockHoldsLocksOfAllKinds"),
		"NewMulti", `return strings.Compare(a.Path(), b.Path())`, `return 0 * strings.Compare(a.Path(), b.Path())`),
	off("multi-lock: all or none", in(lock, "TestAMultiLockThatCannotHaveAll"),
		"Multi.all", `return nil, lost, release(ctx, holds, err)`, `return nil, lost, err`),
	off("multi-lock: a lock that is lost ends the wait for the others", in(lock, "TestAMultiLockThatWaitsAcquiresAgain"),
		"Multi.all", `waiting = h.Context(recipe.Patient(waiting))`, `waiting = recipe.Patient(waiting)`),
	off("local queue: one turn at a time", in(lock, "TestALocalQueue"),
		"local.take", `q.taking, q.taken = true, q.taken+1`, `q.taken++`),
	off("local queue: it gives way to others", in(lock, "TestALocalQueueGivesWay"),
		"local.spent", `q.others && q.used() }`, `false }`),
	off("local queue: a place that nobody waits in is given up", in(lock, "TestALocalQueueIsLeft"),
		"local.advance", `case q.asking && len(q.waiting) == 0:`, `case false:`),
	off("local queue: a turn that came too late is given back", in(lock, "TestATurnThatComesTooLate"),
		"local.acquire", `	if w.turn != nil { // set`, `	if false { // set`),
	off("local queue: a request ends the turns of a node", in(lock, "TestALocalQueueObeys"),
		"local.spent", `isClosed(q.revoked) || q.others && q`, `q.others && q`),
	off("local queue: what is not known counts as others", in(lock, "TestALocalQueueGivesWayToThoseItDoesNotKnow"),
		"local.advance", `if !q.known && q.used() {`, `if false {`),
	off("local queue: a try takes what is not known for others", in(lock, "TestF61"),
		"local.try", ` && (q.known || !q.used())`, ""),
	off("local queue: what was known of a hold goes with it", in(lock, "TestALockTakenByATryYields"),
		"local.adopt", `	q.drop()
`,
		""),
	off("local queue: those that have waited are not refused", in(lock, "TestF56ACallThatHasWaited"),
		"local.ask", `q.waiting[0].done != nil`, `false`),
	off("local queue: a call that has waited elsewhere is not refused", in(lock, "TestF56AMultiLock"),
		"local.ask", `if refused && w.patient {`, `if refused && false {`),
	off("multi-lock: it is not refused after a wait", in(lock, "TestF56AMultiLock"),
		"Multi.all", `recipe.Patient(waiting)`, `waiting`),
	off("multi-lock: it is not refused when it begins again", in(lock, "TestF56AMultiLock"),
		"Multi.Acquire", `ctx = recipe.Patient(ctx)`, ""),
	off("lingering: newcomers are noticed", in(lock, "TestALockThatLingersYields"),
		"local.watch", `others = q.contended(names, path.Base(h.Node()))`, `others = false && q.contended(names, path.Base(h.Node()))`),
	off("lingering: newcomers of the other dialect are noticed", in(lock, "TestALockThatLingersYields"),
		"local.contended", `line.AnyDialect = true`, ""),
	off("lingering: a request to give up is noticed", in(lock, "TestALockThatLingersYields"),
		"local.watch", `v.Until(revoked)`, ""),
	off("lingering: it ends", in(lock, "TestALockThatLingersIsTakenAgain"),
		"local.rest", `left := q.linger - time.Since(q.freed)`, `left := q.linger`),
	off("lingering: it begins anew after each turn", in(lock, "TestALockThatLingersIsTakenAgain"),
		"local.rest", `		case left > 0:`, `		case false:`),
	off("Nest looks at the window", in(coord, "TestANestedHold"),
		"Hold.Nest", `	if err := h.Err(); err != nil {
		return nil, opError("nest"`,
		`	if err := error(nil); err != nil {
		return nil, opError("nest"`),
	off("local queue: a lost turn sends the others to the line", in(lock, "TestALocalQueueThatLosesItsNode"),
		"Hold.tellEnded", `			go ended()`, ""),
	off("local queue: a turn lasts as long as the handles made inside of it", in(lock, "TestATurnLasts"),
		"Hold.another", `return newHold(cl, h.in), nil`, `return newHold(cl, nil), nil`),
	off("local queue: a turn lasts as long as the nests inside of it", in(lock, "TestATurnLasts"),
		"Hold.another", `&nest{in: h.in, ended: ended}`, `&nest{ended: ended}`),
	off("local queue: a turn lasts until its transactions are answered", in(lock, "TestATurnLasts"),
		"Hold.during", `	cl.mu.Unlock()
	err := transact()
	cl.mu.Lock()
	cl.unsure = cl.unsure || errors.Is(err, ErrUnconfirmed)
	over := h.in.unuse()
`,
		`	over := h.in.unuse()
	cl.mu.Unlock()
	err := transact()
	cl.mu.Lock()
	cl.unsure = cl.unsure || errors.Is(err, ErrUnconfirmed)
`),
	off("local queue: a node is given up after a transaction of unknown outcome", in(lock, "TestANodeIsGivenUpAfter"),
		"Hold.another", `case cl.unsure:`, `case false:`),
	off("local queue: nothing is attached to a turn", in(lock, "TestF62ATurnDoesNotDecide"),
		"Hold.Attach", `err = errNested`, ""),
	off("a nest does not end the hold by a transaction", in(coord, "TestANestThatIsTheLast"),
		"Hold.mayEnd", `case h.in != nil:`, `case false:`),
}

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
		"Semaphore.acquire", `ctx = recipe.Patient(ctx)`, ""),
	off("semaphore: a lease whose name a former session has waits for that", in(sema, "TestALeaseOfKazoosWhoseSession"),
		"claim.awaitFormer", `	if len(former) == 0 || cl.named == nil {`, `	if true {`),
	off("max hold: the holder is asked first", in(lock, "TestAHoldThatLastsTooLongIsAsked"),
		"Mutex.expire", `_ = inspect.Revoke(asking, m.client, h.Node())`, `_ = inspect.Revoke`),
	off("max hold: the holder has the time of the grace", in(lock, "TestAHoldThatLastsTooLongIsAsked"),
		"Mutex.expire", `	<-asking.Done()
`, ""),
	off("max hold: a hold that lasts too long ends", in(lock, "TestAHoldThatLastsTooLongEnds"),
		"Hold.Forfeit", `h.claim.lose(cmp.Or(cause, ErrNodeDeleted), false)`, `_ = cmp.Or(cause, ErrNodeDeleted)`),
	off("max hold: a hold that was released in time does not cost the next", in(lock, "TestATurnThatLastsTooLong"),
		"Mutex.bounded", `m.expire(held, h)`, `m.expire(context.Background(), h)`).and("Mutex.bounded", `due.Stop()`, `_ = due`),
}
