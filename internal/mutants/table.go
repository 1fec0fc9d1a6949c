package main

const (
	coord   = "./coord"
	faults  = "./internal/faults"
	inside  = "./coord/internal/session"
	rwlock  = "./coord/rwlock"
	barrier = "./coord/doublebarrier"
)

// mutants is every guard with the tests that need it.
var mutants = []mutant{
	{
		guard: "recovery: a write before the listing",
		file:  "coord/claim.go",
		old: `	if err := cl.sess.Flush(ctx); err != nil {
		return false, err
	}
	names, err := cl.sess.Children(ctx, cl.dir)`,
		new:   `	names, err := cl.sess.Children(ctx, cl.dir)`,
		tests: []suite{{pkg: coord, run: "TestACreateWhoseReplyIsLostBeforeALaggingServerIsNotMadeAgain"}},
	},
	{
		guard: "recovery: a lost create is looked for at all",
		file:  "coord/claim.go",
		old:   `if found, err := cl.recover(name); found || err != nil {`,
		new:   `if found, err := false, error(nil); found || err != nil {`,
		tests: []suite{{pkg: faults, run: "TestF01"}},
	},
	{
		guard: "recovery: the node's owner",
		file:  "coord/claim.go",
		old:   `node.Stat.Owner != cl.sess.ID() || `,
		new:   ``,
		tests: []suite{{pkg: coord, run: "TestALostCreateIsNotMistakenForTheSameNodeOfAnotherSession"}},
	},
	{
		guard: "recovery: the GUID",
		file:  "coord/claim.go",
		old:   `return strings.HasPrefix(name, prefix)`,
		new:   `return strings.HasPrefix(name, prefix[:3]) // _c_`,
		tests: []suite{{pkg: coord, run: "TestALostCreateIsNotMistakenForAnotherClaimOfTheSameClient"}},
	},
	{
		guard: "one connection object for one session",
		file:  "coord/internal/session/session.go",
		old:   `case id != known:`,
		new:   `case false:`,
		tests: []suite{{pkg: faults, run: "TestF21"}},
	},
	{
		guard: "a session that no server confirms for T is given up",
		file:  "coord/internal/session/keeper.go",
		old:   `if left <= 0 {`,
		new:   `if false {`,
		tests: []suite{{pkg: faults, run: "TestF20", real: true}},
	},
	{
		guard: "window: only writes prove anything",
		file:  "coord/internal/session/session.go",
		old:   `s.trust.ack(r.sent, isWrite(r.op) && committed(code))`,
		new:   `s.trust.ack(r.sent, committed(code))`,
		tests: []suite{{pkg: coord, run: "TestAHoldBehindAnIsolatedFollowerEndsBeforeTheNextIsGranted"}},
	},
	{
		guard: "window: the probe is a write, not a sync",
		file:  "coord/internal/session/session.go",
		old:   `s.trust.ack(r.sent, isWrite(r.op) && committed(code))`,
		new: `if r.op == opMulti {
		go s.conn.Sync("/")
		return
	}
	s.trust.ack(r.sent, r.op == 9 || isWrite(r.op) && committed(code))`,
		tests: []suite{{pkg: faults, run: "TestF46", real: true}},
	},
	{
		guard: "window: touches reach the leader half a tick late",
		file:  "coord/internal/session/trust.go",
		old:   `sent.Add(-t.lag), 0`,
		new:   `sent, 0`,
		tests: []suite{
			{pkg: inside, run: "TestAWriteAloneProvesNothingYet"},
			{pkg: coord, run: "TestAHoldBehindAnIsolatedFollowerEndsBeforeTheNextIsGranted"},
		},
	},
	{
		guard: "window: a reconnect counts once a write was acknowledged",
		file:  "coord/internal/session/trust.go",
		old: `	t.attached = sent
}`,
		new: `	t.attached, t.base = sent, sent
}`,
		tests: []suite{{pkg: inside, run: "TestAReconnectCountsOnceAWriteIsAcknowledged"}},
	},
	{
		guard: "window: a margin for clocks of different speed",
		file:  "coord/internal/session/trust.go",
		old:   `return t.timeout / 50 }`,
		new:   `return 0 }`,
		tests: []suite{{pkg: inside, run: "."}, {pkg: coord, run: "TestAHold"}},
	},
	{
		guard: "window: time asleep counts",
		file:  "coord/internal/session/trust.go",
		old:   `t.shift(-slept)`,
		new:   ``,
		tests: []suite{{pkg: inside, run: "TestTimeThatOnlyTheWallClockSawCountsAsPassed"}},
	},
	{
		guard: "window: probes while there are claims",
		file:  "coord/internal/session/keeper.go",
		old:   `if isUp && s.claims.Load() > 0 {`,
		new:   `if false {`,
		tests: []suite{{pkg: coord, run: "TestAHoldLastsForHoursWhileNothingFails"}},
	},
	{
		guard: "window: no probes without claims",
		file:  "coord/internal/session/keeper.go",
		old:   `if isUp && s.claims.Load() > 0 {`,
		new:   `if isUp {`,
		tests: []suite{{pkg: coord, run: "TestNoProbesAreSentWithoutClaims"}},
	},
	{
		guard: "window: its end ends holds",
		file:  "coord/own.go",
		old:   `case change == session.WindowClosed:`,
		new:   `case false:`,
		tests: []suite{{pkg: coord, run: "TestAHoldEndsBeforeTheServerGivesTheSessionUp"}},
	},
	{
		guard: "Err looks at the clock",
		file:  "coord/hold.go",
		old:   `if err == nil && !time.Now().Before(cl.sess.Deadline()) {`,
		new:   `if false {`,
		tests: []suite{{pkg: faults, run: "TestF25"}},
	},
	{
		guard: "Vouch: a grant needs an open window",
		file:  "coord/turn.go",
		old:   `if err := cl.sess.Vouch(ctx); err != nil {`,
		new:   `if err := error(nil); err != nil {`,
		tests: []suite{{pkg: coord, run: "TestAWaiterWhoseWindowIsClosedIsGrantedItsTurnWhenItIsOpen"}},
	},
	{
		guard: "a hold watches its own node",
		file:  "coord/turn.go",
		old:   `	cl.watchOwnSoon()`,
		new:   ``,
		tests: []suite{{pkg: faults, run: "TestF37"}},
	},
	{
		guard: "a waiter watches its own node",
		file:  "coord/turn.go",
		old:   `own.watch, own.err = cl.watchOwn(ctx)`,
		new:   `own.watch, own.err = cl.sess.WatchData(ctx, cl.dir)`,
		tests: []suite{{pkg: faults, run: "TestF38"}},
	},
	{
		guard: "the end of the session ends claims",
		file:  "coord/own.go",
		old:   `case change == session.Over:`,
		new:   `case false:`,
		tests: []suite{{pkg: faults, run: "TestF32"}},
	},
	{
		guard: "janitor: an abandoned create",
		file:  "coord/claim.go",
		old: `			return
		}
		cl.leave()
	}
	if cl.sess.Go(finish) != nil {`,
		new: `			return
		}
	}
	if cl.sess.Go(finish) != nil {`,
		tests: []suite{{pkg: faults, run: "TestF04|TestF44"}},
	},
	{
		guard: "janitor: a delete is repeated",
		file:  "coord/leave.go",
		old:   `case errors.Is(err, ErrDisconnected):`,
		new:   `case errors.Is(err, ErrDisconnected): return nil`,
		tests: []suite{{pkg: faults, run: "TestF07"}},
	},
	{
		guard: "janitor: a lost hold's node is deleted",
		file:  "coord/own.go",
		old: `		cl.finish(ended, cause)
		cl.leave()
	}
}`,
		new: `		cl.finish(ended, cause)
	}
}`,
		tests: []suite{{pkg: coord, run: "TestALostHoldsNodeIsDeletedWhenTheSessionSurvives"}},
	},
	{
		guard: "re-check: the rule is asked again after a wake-up",
		file:  "coord/turn.go",
		old:   `return cl.without(line, gone), nil`,
		new:   `return line[indexOf(line, cl.name):], nil`,
		tests: []suite{{pkg: faults, run: "TestF29|TestF38"}},
	},
	{
		guard: "re-check: a listing after a lost connection",
		file:  "coord/internal/session/wire.go",
		old:   `for a := range w.watches {`,
		new:   `for a := range map[armed]struct{}{} {`,
		tests: []suite{{pkg: faults, run: "TestF08|TestF09"}},
	},
	{
		guard: "re-check: a listing after a writer's going",
		file:  "coord/line.go",
		old:   `return gone.Kind == Write || gone.Dialect == Kazoo && slices.Contains(l.Kinds, Read)`,
		new:   `return false`,
		tests: []suite{{pkg: rwlock, run: "TestADowngrade"}},
	},
	{
		guard: "the end of the sequence numbers",
		file:  "coord/line.go",
		old:   `if self.Sequence < 0 || self.Sequence >= sequenceLimit {`,
		new:   `if false {`,
		tests: []suite{{pkg: coord, run: "TestASequenceNearItsEndIsRefused"}, {pkg: faults, run: "TestF41", real: true}},
	},
	{
		guard: "the other dialect is refused",
		file:  "coord/line.go",
		old:   `if f.Sequence < self.Sequence {`,
		new:   `if false {`,
		tests: []suite{{pkg: faults, run: "TestF40AContender"}},
	},
	{
		guard: "names of no known shape are ignored",
		file:  "coord/dialect.go",
		old:   `if len(body) > n && body[n] == '-' && isHex(strings.ReplaceAll(body[:n], "-", "")) {`,
		new:   `if body[n] == '-' {`,
		tests: []suite{{pkg: faults, run: "TestF40Names"}},
	},
	{
		guard: "a missing directory is made again",
		file:  "coord/claim.go",
		old:   `if err := cl.sess.EnsurePath(ctx, cl.dir, aclOf(c.opts.acl)); err != nil && !transient(err) {`,
		new:   `if true {`,
		tests: []suite{{pkg: faults, run: "TestF39AnAdmin"}},
	},
	{
		guard: "a throttled request is repeated",
		file:  "coord/internal/session/errors.go",
		old:   `"unknown error: -127": ErrThrottled,`,
		new:   ``,
		tests: []suite{{pkg: faults, run: "TestF24AThrottled"}},
	},
	{
		guard: "oversized data are not sent",
		file:  "coord/connectstring.go",
		old:   `if len(data) > maxData {`,
		new:   `if false {`,
		tests: []suite{{pkg: coord, run: "TestDataThatAServerWouldNotAccept"}},
	},
	{
		guard: "the client library never sees a write error",
		file:  "coord/internal/session/wire.go",
		old: `		_ = w.Conn.Close()
	} else if ok {`,
		new: `		return 0, err
	} else if ok {`,
		tests: []suite{{pkg: faults, run: "TestF42TheWrite"}},
	},
	{
		guard: "a server that does not answer a handshake is given up",
		file:  "coord/internal/session/wire.go",
		old:   `nearest(w.greeted.Add(w.limit))`,
		new:   ``,
		tests: []suite{{pkg: faults, run: "TestF31|TestF13"}, {pkg: faults, run: "TestF22", real: true}},
	},
	{
		guard: "a transaction of a hold checks the hold's node",
		file:  "coord/hold.go",
		old:   `append([]Op{CheckOp(cl.Node(), -1)}, ops...)`,
		new:   `append([]Op{CheckOp("/", -1)}, ops...)`,
		tests: []suite{{pkg: coord, run: "TestATxnOfALostHoldWritesNothing"}},
	},
	{
		guard: "a late context ends an acquire",
		file:  "coord/internal/session/ops.go",
		old: `	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return zero, context.Cause(ctx)
	}`,
		new: `	case r := <-done:
		return r.value, r.err
	}`,
		tests: []suite{{pkg: faults, run: "TestF04|TestF13"}},
	},
	{
		guard: "double barrier: the roster is checked when the round begins",
		file:  "coord/doublebarrier/enter.go",
		old:   `if name != e.self.Name {`,
		new:   `if false {`,
		tests: []suite{{pkg: barrier, run: "TestARoundBeginsOnlyWhileAllItsMembersAreThere"}},
	},
	{
		guard: "double barrier: ready changes by its version",
		file:  "coord/doublebarrier/enter.go",
		old:   `ops = append(ops, coord.SetOp(e.ready, encode(next), r.stat.Version))`,
		new:   `ops = append(ops, coord.SetOp(e.ready, encode(next), -1))`,
		tests: []suite{{pkg: barrier, run: "TestEverySchedule|TestNobodyHangs|TestNoSingleLoss"}},
	},
	{
		guard: "double barrier: only members of the round get in",
		file:  "coord/doublebarrier/enter.go",
		old:   `r.Open && index >= 0 {`,
		new:   `r.Open {`,
		tests: []suite{{pkg: barrier, run: "TestALateComer|TestOneTooMany|TestWhoWaits"}},
	},
	{
		guard: "double barrier: the round number",
		file:  "coord/doublebarrier/leave.go",
		old:   `if r.Number != m.round {`,
		new:   `if false {`,
		tests: []suite{{pkg: barrier, run: "TestEverySchedule|TestNobodyHangs|TestNoSingleLoss|TestTheOutcome|TestALeave"}},
	},
	{
		guard: "double barrier: a member that died unfinished is missing",
		file:  "coord/doublebarrier/leave.go",
		old:   `			l.missing = append(l.missing, l.next)`,
		new:   ``,
		tests: []suite{{pkg: barrier, run: "TestAMemberThatDiesInside|TestAMemberThatAbandons"}},
	},
}
