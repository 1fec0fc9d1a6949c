package main

const (
	coord   = "./coord"
	faults  = "./internal/faults"
	inside  = "./coord/internal/session"
	rwlock  = "./coord/rwlock"
	barrier = "./coord/doublebarrier"
	sema    = "./coord/semaphore"
	items   = "./coord/queue"
	elect   = "./coord/election"
)

// mutants is every guard with the tests that need it.
var mutants = []mutant{
	{
		guard: "recovery: a write before the listing",
		edit: edit{
			file: "coord/claim.go",
			old: `	if err := cl.sess.Flush(ctx); err != nil {
		return false, err
	}
	names, err := cl.sess.Children(ctx, cl.dir)`,
			new: `	names, err := cl.sess.Children(ctx, cl.dir)`,
		},
		tests: []suite{{pkg: coord, run: "TestACreateWhoseReplyIsLostBeforeALaggingServerIsNotMadeAgain"}},
	},
	{
		guard: "recovery: a lost create is looked for at all",
		edit: edit{
			file: "coord/claim.go",
			old:  `if found, err := cl.recover(name); found || err != nil {`,
			new:  `if found, err := false, error(nil); found || err != nil {`,
		},
		tests: []suite{{pkg: faults, run: "TestF01"}},
	},
	{
		guard: "recovery: the node's owner",
		edit: edit{
			file: "coord/claim.go",
			old:  `node.Stat.Owner != cl.sess.ID() || `,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestALostCreateIsNotMistakenForTheSameNodeOfAnotherSession"}},
	},
	{
		guard: "recovery: the GUID",
		edit: edit{
			file: "coord/claim.go",
			old:  `return strings.HasPrefix(name, prefix)`,
			new:  `return strings.HasPrefix(name, prefix[:3]) // _c_`,
		},
		tests: []suite{{pkg: coord, run: "TestALostCreateIsNotMistakenForAnotherClaimOfTheSameClient"}},
	},
	{
		guard: "one connection object for one session",
		edit: edit{
			file: "coord/internal/session/session.go",
			old:  `case id != known:`,
			new:  `case id != known && id == 0:`,
		},
		tests: []suite{{pkg: faults, run: "TestF21"}},
	},
	{
		guard: "a session that no server confirms for T is given up",
		edit: edit{
			file: "coord/internal/session/keeper.go",
			old:  `if left <= 0 {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: faults, run: "TestF20", real: true}},
	},
	{
		guard: "window: only writes prove anything",
		edit: edit{
			file: "coord/internal/session/session.go",
			old:  `s.trust.ack(r.sent, time.Now(), isWrite(r.op) && committed(code))`,
			new:  `s.trust.ack(r.sent, time.Now(), committed(code))`,
		},
		tests: []suite{{pkg: coord, run: "TestAHoldWhoseClientReadsFromAnIsolatedFollowerEndsBeforeTheNextIsGranted"}},
	},
	{
		guard: "window: the probe is a write, not a sync",
		edit: edit{
			file: "coord/internal/session/ops.go",
			old:  `_, err := c.Multi(&zk.CheckVersionRequest{Path: "/", Version: -1})`,
			new:  `_, err := c.Sync("/")`,
		},
		also: []edit{{
			file: "coord/internal/session/frame.go",
			old:  `case opCreate, opDelete,`,
			new:  `case 9, opCreate, opDelete,`,
		}},
		// How long a superseded leader acknowledges syncs is a matter of luck.
		tests: []suite{
			{pkg: faults, run: "TestF46", real: true},
			{pkg: faults, run: "TestF46", real: true},
			{pkg: faults, run: "TestF46", real: true},
		},
	},
	{
		guard: "window: touches reach the leader half a tick late",
		edit: edit{
			file: "coord/internal/session/trust.go",
			old:  `sent.Add(-t.lag), 0`,
			new:  `sent, 0`,
		},
		tests: []suite{
			{pkg: inside, run: "TestAWriteAloneProvesNothingYet"},
			{pkg: coord, run: "TestAHoldBehindAnIsolatedFollowerEndsBeforeTheNextIsGranted"},
		},
	},
	{
		guard: "window: a follower heard of a request only when it was answered",
		edit: edit{
			file: "coord/internal/session/trust.go",
			old:  `answer{sent, now}`,
			new:  `answer{sent, sent}`,
		},
		tests: []suite{
			{pkg: inside, run: "TestARequestProvesNothingOfTheTimeBeforeItsAnswer"},
			{pkg: coord, run: "TestAHoldBehindAFollowerIsolatedAfterAStallEndsBeforeTheNextIsGranted"},
		},
	},
	{
		guard: "window: a reconnect counts once a write was acknowledged",
		edit: edit{
			file: "coord/internal/session/trust.go",
			old: `	t.attached = sent
}`,
			new: `	t.attached, t.base = sent, sent
}`,
		},
		tests: []suite{{pkg: inside, run: "TestAReconnectCountsOnceAWriteIsAcknowledged"}},
	},
	{
		guard: "window: a margin for clocks of different speed",
		edit: edit{
			file: "coord/internal/session/trust.go",
			old:  `return t.timeout / 50 }`,
			new:  `return 0 }`,
		},
		tests: []suite{{pkg: inside, run: "."}, {pkg: coord, run: "TestAHold"}},
	},
	{
		guard: "window: time asleep counts",
		edit: edit{
			file: "coord/internal/session/trust.go",
			old:  `t.shift(-slept)`,
			new:  ``,
		},
		tests: []suite{{pkg: inside, run: "TestTimeThatOnlyTheWallClockSawCountsAsPassed"}},
	},
	{
		guard: "window: probes while there are claims",
		edit: edit{
			file: "coord/internal/session/keeper.go",
			old:  `if isUp && s.claims.Load() > 0 {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestAHoldLastsForHoursWhileNothingFails"}},
	},
	{
		guard: "window: no probes without claims",
		edit: edit{
			file: "coord/internal/session/keeper.go",
			old:  `if isUp && s.claims.Load() > 0 {`,
			new:  `if isUp {`,
		},
		tests: []suite{{pkg: coord, run: "TestNoProbesAreSentWithoutClaims"}},
	},
	{
		guard: "window: its end ends holds",
		edit: edit{
			file: "coord/own.go",
			old:  `case change == session.WindowClosed:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: coord, run: "TestAHoldEndsBeforeTheServerGivesTheSessionUp"}},
	},
	{
		guard: "Err looks at the clock",
		edit: edit{
			file: "coord/hold.go",
			old:  `if err == nil && !time.Now().Before(cl.sess.Deadline()) {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestErrIsRightBeforeTheLossIsNoticed"}, {pkg: faults, run: "TestF25"}},
	},
	{
		guard: "Vouch: a grant needs an open window",
		edit: edit{
			file: "coord/turn.go",
			old:  `if err := cl.sess.Vouch(ctx); err != nil {`,
			new:  `if err := error(nil); err != nil {`,
		},
		tests: []suite{{pkg: coord, run: "TestAWaiterWhoseWindowIsClosedIsGrantedItsTurnWhenItIsOpen"}},
	},
	{
		guard: "a hold watches its own node",
		edit: edit{
			file: "coord/turn.go",
			old:  `	cl.watchOwnSoon()`,
			new:  ``,
		},
		tests: []suite{{pkg: faults, run: "TestF37"}},
	},
	{
		guard: "a waiter watches its own node",
		edit: edit{
			file: "coord/turn.go",
			old:  `own.watch, own.err = cl.watchOwn(ctx)`,
			new:  `own.watch, own.err = cl.sess.WatchData(ctx, cl.dir)`,
		},
		tests: []suite{{pkg: faults, run: "TestF38"}},
	},
	{
		guard: "the end of the session ends claims",
		edit: edit{
			file: "coord/own.go",
			old:  `case change == session.Over:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: faults, run: "TestF32"}},
	},
	{
		guard: "janitor: an abandoned create",
		edit: edit{
			file: "coord/claim.go",
			old: `			return
		}
		cl.leave()
	}
	if cl.sess.Go(finish) != nil {`,
			new: `			return
		}
	}
	if cl.sess.Go(finish) != nil {`,
		},
		tests: []suite{{pkg: faults, run: "TestF04|TestF44"}},
	},
	{
		guard: "janitor: a delete is repeated",
		edit: edit{
			file: "coord/leave.go",
			old:  `case errors.Is(err, ErrDisconnected):`,
			new:  `case errors.Is(err, ErrDisconnected): return nil`,
		},
		tests: []suite{{pkg: faults, run: "TestF07"}},
	},
	{
		guard: "janitor: a lost hold's node is deleted",
		edit: edit{
			file: "coord/own.go",
			old: `		cl.finish(ended, cause)
		cl.leave()
	}
}`,
			new: `		cl.finish(ended, cause)
	}
}`,
		},
		tests: []suite{{pkg: coord, run: "TestALostHoldsNodeIsDeletedWhenTheSessionSurvives"}},
	},
	{
		guard: "re-check: the rule is asked again after a wake-up",
		edit: edit{
			file: "coord/turn.go",
			old:  `return cl.without(line, gone), nil`,
			new:  `return line[indexOf(line, cl.name):], nil`,
		},
		tests: []suite{{pkg: faults, run: "TestF29|TestF38"}},
	},
	{
		guard: "re-check: a listing after a lost connection",
		edit: edit{
			file: "coord/internal/session/wire.go",
			old:  `for a := range w.watches {`,
			new:  `for a := range map[armed]struct{}{} {`,
		},
		tests: []suite{{pkg: faults, run: "TestF08|TestF09"}},
	},
	{
		guard: "re-check: a listing after a writer's going",
		edit: edit{
			file: "coord/line.go",
			old:  `return gone.Kind == Write || gone.Dialect == Kazoo && slices.Contains(l.Kinds, Read)`,
			new:  `return false`,
		},
		tests: []suite{{pkg: rwlock, run: "TestADowngrade"}},
	},
	{
		guard: "the end of the sequence numbers",
		edit: edit{
			file: "coord/line.go",
			old:  `if self.Sequence < 0 || self.Sequence >= sequenceLimit {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestASequenceNearItsEndIsRefused"}, {pkg: faults, run: "TestF41", real: true}},
	},
	{
		guard: "the other dialect is refused",
		edit: edit{
			file: "coord/line.go",
			old:  `if f.Sequence < self.Sequence {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: faults, run: "TestF40AContender"}},
	},
	{
		guard: "names of no known shape are ignored",
		edit: edit{
			file: "coord/dialect.go",
			old:  `if len(body) > n && body[n] == '-' && isHex(strings.ReplaceAll(body[:n], "-", "")) {`,
			new:  `if body[n] == '-' {`,
		},
		tests: []suite{{pkg: faults, run: "TestF40Names"}},
	},
	{
		guard: "a missing directory is made again",
		edit: edit{
			file: "coord/claim.go",
			old:  `if err := cl.sess.EnsurePath(ctx, cl.dir, aclOf(c.opts.acl)); err != nil && !transient(err) {`,
			new:  `if true {`,
		},
		tests: []suite{{pkg: faults, run: "TestF39AnAdmin"}},
	},
	{
		guard: "a missing parent is made again",
		edit: edit{
			file: "coord/internal/session/ops.go",
			old:  `case errors.Is(err, ErrNoNode):`,
			new:  `case false && errors.Is(err, ErrNoNode):`,
		},
		tests: []suite{{pkg: coord, run: "TestADirectoryWhoseParentIsRemovedMeanwhile"}},
	},
	{
		guard: "a throttled request is repeated",
		edit: edit{
			file: "coord/internal/session/errors.go",
			old:  `"unknown error: -127": ErrThrottled,`,
			new:  ``,
		},
		tests: []suite{{pkg: faults, run: "TestF24AThrottled"}},
	},
	{
		guard: "oversized data are not sent",
		edit: edit{
			file: "coord/connectstring.go",
			old:  `if len(data) > maxData {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestDataThatAServerWouldNotAccept"}},
	},
	{
		guard: "the client library never sees a write error",
		edit: edit{
			file: "coord/internal/session/wire.go",
			old: `		_ = w.Conn.Close()
	} else if ok {`,
			new: `		return 0, err
	} else if ok {`,
		},
		tests: []suite{{pkg: faults, run: "TestF42TheWrite"}},
	},
	{
		guard: "a server that does not answer a handshake is given up",
		edit: edit{
			file: "coord/internal/session/wire.go",
			old:  `nearest(w.greeted.Add(w.limit))`,
			new:  ``,
		},
		tests: []suite{{pkg: faults, run: "TestF31|TestF13"}, {pkg: faults, run: "TestF22", real: true}},
	},
	{
		guard: "a transaction of a hold checks the hold's node",
		edit: edit{
			file: "coord/hold.go",
			old:  `append([]Op{CheckOp(cl.Node(), cl.version())}, ops...)`,
			new:  `append([]Op{CheckOp("/", -1)}, ops...)`,
		},
		tests: []suite{{pkg: coord, run: "TestATxnOfALostHoldWritesNothing"}},
	},
	{
		guard: "calls end with their contexts",
		edit: edit{
			file: "coord/internal/session/ops.go",
			old: `	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return zero, context.Cause(ctx)
	}`,
			new: `	case r := <-done:
		return r.value, r.err
	}`,
		},
		tests: []suite{{pkg: faults, run: "TestF13"}, {pkg: "./coord/barrier", run: "TestEveryCallEndsWithItsContext"}},
	},
	{
		guard: "double barrier: the roster is checked when the round begins",
		edit: edit{
			file: "coord/doublebarrier/enter.go",
			old:  `if name != e.self.Name {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: barrier, run: "TestARoundBeginsOnlyWhileAllItsMembersAreThere"}},
	},
	{
		guard: "double barrier: ready changes by its version",
		edit: edit{
			file: "coord/doublebarrier/enter.go",
			old:  `ops = append(ops, coord.SetOp(e.ready, encode(next), r.stat.Version))`,
			new:  `ops = append(ops, coord.SetOp(e.ready, encode(next), -1))`,
		},
		tests: []suite{{pkg: barrier, run: "TestEverySchedule|TestNobodyHangs|TestNoSingleLoss"}},
	},
	{
		guard: "double barrier: only members of the round get in",
		edit: edit{
			file: "coord/doublebarrier/enter.go",
			old:  `r.Open && index >= 0 {`,
			new:  `r.Open {`,
		},
		tests: []suite{{pkg: barrier, run: "TestALateComer|TestOneTooMany|TestWhoWaits"}},
	},
	{
		guard: "double barrier: outcomes are kept for the slow",
		edit: edit{
			file: "coord/doublebarrier/state.go",
			old:  `return !r.alive(line) })`,
			new:  `return true })`,
		},
		tests: []suite{{pkg: barrier, run: "TestTheOutcomeIsKept"}},
	},
	{
		guard: "double barrier: whoever may complete a round looks",
		edit: edit{
			file: "coord/doublebarrier/enter.go",
			old:  `>= e.size-1 }`,
			new:  `== e.size-1 }`,
		},
		tests: []suite{{pkg: barrier, run: "TestAMemberThatGivesUp|TestACrashedRound"}},
	},
	{
		guard: "double barrier: a crashed round does not block those who wait",
		edit: edit{
			file: "coord/doublebarrier/enter.go",
			old:  `if r.Open && r.alive(line) {`,
			new:  `if r.Open {`,
		},
		tests: []suite{{pkg: barrier, run: "TestACrashedRound"}},
	},
	{
		guard: "double barrier: who waits for a crash hears of it",
		edit: edit{
			file: "coord/doublebarrier/enter.go",
			old: `	return wake, true, err
}`,
			new: `	return nil, true, err
}`,
		},
		tests: []suite{{pkg: barrier, run: "TestThoseWhoWaitGoOn"}},
	},
	{
		guard: "double barrier: an opening that failed is tried again",
		edit: edit{
			file: "coord/doublebarrier/enter.go",
			old:  `return false, nil // one has gone`,
			new:  `return true, nil // one has gone`,
		},
		tests: []suite{{pkg: barrier, run: "TestWhenOneOfTooMany"}},
	},
	{
		guard: "double barrier: a server that lags makes nobody late",
		edit: edit{
			file: "coord/doublebarrier/enter.go",
			old:  `if !flushed {`,
			new:  `if !flushed && false {`,
		},
		tests: []suite{{pkg: barrier, run: "TestANewcomer"}},
	},
	{
		guard: "double barrier: nobody is done before it says so",
		edit: edit{
			file: "coord/doublebarrier/leave.go",
			old:  `case other.err != nil || !other.finished:`,
			new:  `case other.err != nil || !other.finished && false:`,
		},
		tests: []suite{{pkg: barrier, run: "TestMembersEnter|TestWhenTheMonitor"}},
	},
	{
		guard: "double barrier: the next monitor takes over",
		edit: edit{
			file: "coord/doublebarrier/leave.go",
			old:  `for ; l.before >= 0; l.before-- {`,
			new:  `for l.before >= 0 {`,
		},
		tests: []suite{{pkg: barrier, run: "TestWhenTheMonitor"}},
	},
	{
		guard: "double barrier: who left after the end is not missing",
		edit: edit{
			file: "coord/doublebarrier/leave.go",
			old:  `case r.hasChanged():`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: barrier, run: "TestALeaverThatIsSlow"}},
	},
	{
		guard: "double barrier: a member that died unfinished is missing",
		edit: edit{
			file: "coord/doublebarrier/leave.go",
			old:  `			l.missing = append(l.missing, l.next)`,
			new:  ``,
		},
		tests: []suite{{pkg: barrier, run: "TestAMemberThatDiesInside|TestAMemberThatAbandons"}},
	},
	{
		guard: "semaphore: the watch on the leases",
		edit: edit{
			file: "coord/semaphore/acquire.go",
			old:  `case <-left:`,
			new:  `case <-make(chan struct{}):`,
		},
		tests: []suite{{pkg: sema, run: "TestNoWakeUpIsLost|TestWaitersAreServed"}},
	},
	{
		guard: "semaphore: the watch on the limit",
		edit: edit{
			file: "coord/semaphore/acquire.go",
			old:  `case <-changed:`,
			new:  `case <-func(<-chan struct{}) chan struct{} { return nil }(changed):`,
		},
		tests: []suite{{pkg: sema, run: "TestARaisedLimit"}},
	},
	{
		guard: "semaphore: leases are counted again after the own was made",
		edit: edit{
			file: "coord/semaphore/acquire.go",
			old:  `return before+len(claims) <= limit, nil`,
			new:  `return true, nil`,
		},
		tests: []suite{{pkg: sema, run: "TestNoMoreThanTheLimit"}},
	},
	{
		guard: "semaphore: the queue",
		edit: edit{
			file: "coord/semaphore/acquire.go",
			old: `	switch self {
	case 0:
		return nil, true
	case 1:`,
			new: `	switch self {
	case 0, 1:
		return nil, true
	case -1:`,
		},
		tests: []suite{{pkg: sema, run: "TestWhoWantsMany|TestWaitersAreServed"}},
	},
	{
		guard: "semaphore: programs that disagree about the limit are refused",
		edit: edit{
			file: "coord/semaphore/limit.go",
			old:  `case ok && s.limit != Stored && s.limit != limit:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: sema, run: "TestProgramsThatDisagree"}},
	},
	{
		guard: "semaphore: the place in the queue lasts until Kazoo can count the lease",
		edit: edit{
			file: "coord/semaphore/acquire.go",
			old:  `	_, err := queue.Txn(ctx)`,
			new:  `	var err error`,
		},
		tests: []suite{{pkg: sema, run: "TestWhoLosesItsPlace"}},
	},
	{
		guard: "semaphore: every child counts",
		edit: edit{
			file: "coord/semaphore/acquire.go",
			old:  `!(ordered && last >= 0 && sequence > last)`,
			new:  `ordered && sequence < last`,
		},
		tests: []suite{{pkg: sema, run: "TestEveryChildCounts"}},
	},
	{
		guard: "reads that do not go back in time",
		edit: edit{
			file: "coord/retry.go",
			old:  `if err := f.client.Flush(ctx); err != nil {`,
			new:  `if err := ctx.Err(); err != nil {`,
		},
		tests: []suite{{pkg: "./coord/barrier", run: "TestAWaiterAtAServerThatLags"}, {pkg: elect, run: "TestALeaderOfThePast"}},
	},
	{
		guard: "barrier: a barrier that was closed again had been opened",
		edit: edit{
			file: "coord/barrier/barrier.go",
			old:  `case closed != 0 && closed != stat.Czxid:`,
			new:  `case closed != 0 && closed != stat.Czxid && false:`,
		},
		tests: []suite{{pkg: "./coord/barrier", run: "ClosedAgain|BetweenItsSessions"}},
	},
	{
		guard: "election: a request to step down outlives a proclamation",
		edit: edit{
			file: "coord/election/term.go",
			old:  `if coord.IsRevocation(data) {`,
			new:  `if coord.IsRevocation(data) && false {`,
		},
		tests: []suite{{pkg: elect, run: "TestARequestToStepDownSurvives"}},
	},
	{
		guard: "election: what a lost leader says does not end Run",
		edit: edit{
			file: "coord/election/run.go",
			old:  `if lost {`,
			new:  `if lost && false {`,
		},
		tests: []suite{{pkg: elect, run: "TestRunWaits"}},
	},
	{
		guard: "election: short terms follow one another slowly",
		edit: edit{
			file: "coord/election/run.go",
			old:  `pause = min(2*pause, limit)`,
			new:  `pause = shortestPause`,
		},
		tests: []suite{{pkg: elect, run: "TestTermsThatEndAtOnce"}},
	},
	{
		guard: "election: who is gone is not the first any more",
		edit: edit{
			file: "coord/election/leader.go",
			old: `		if errors.Is(err, coord.ErrNoNode) {
			continue
		}`,
			new: ``,
		},
		tests: []suite{{pkg: elect, run: "TestAFirstThatGoes"}},
	},
	{
		guard: "queue: an ack removes only what its receiver still has",
		edit: edit{
			file: "coord/queue/item.go",
			old:  `return i.settle(ctx, "ack", coord.DeleteOp(i.queue.entry(i.name), i.version))`,
			new:  `return i.settle(ctx, "ack", coord.DeleteOp(i.queue.entry(i.name), -1))`,
		},
		tests: []suite{{pkg: items, run: "TestAnAckOfAnItemThatAnotherHas|TestNothingIsRemovedThat|TestAnItemIsSettledOnce"}},
	},
	{
		guard: "queue: a claim is deleted only while it is the own",
		edit: edit{
			file: "coord/queue/receive.go",
			old:  `Proof: []coord.Op{coord.CheckOp(q.entry(name), item.version)},`,
			new:  ``,
		},
		tests: []suite{{pkg: items, run: "TestNothingIsRemovedThat|TestAnAckOf"}},
	},
}
