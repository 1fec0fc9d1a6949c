package main

// window is until when a session can be trusted.
var window = []mutant{
	{
		guard: "a session that no server confirms for T is given up",
		edit: edit{
			decl: "Session.attend",
			old:  `if left <= 0 {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestASessionThatNoServerConfirmsAnyMore"}},
	},
	{
		guard: "window: only writes prove anything",
		edit: edit{
			decl: "Conn.examine",
			old:  `r.Op.isWrite() && committed(code)`,
			new:  `committed(code)`,
		},
		tests: []suite{{pkg: coord, run: "TestAHoldWhoseClientReadsFromAnIsolatedFollowerEndsBeforeTheNextIsGranted"}},
	},
	{
		guard: "window: hears of every transaction",
		edit: edit{
			decl: "Conn.heard",
			old:  `r.Op != OpMulti && r.sent`,
			new:  `r.sent`,
		},
		tests: []suite{{pkg: network, run: "TestTheWindowHears"}},
	},
	{
		guard: "window: the probe is a write, not a sync",
		edit: edit{
			decl: "Session.Flush",
			old:  `_, err := s.Txn(ctx, changesNothing)`,
			new:  `_, err := roundTrip(ctx, s, wire.Request{Op: 9}, func(b []byte) []byte { return append(b, 0, 0, 0, 1, '/') }, nothing)`,
		},
		also: []edit{{
			decl: "OpCode.isWrite",
			old:  `case OpCreate, OpDelete,`,
			new:  `case 9, OpCreate, OpDelete,`,
		}, {
			decl: "Session.probe",
			old:  `wire.Request{Op: wire.OpMulti, Urgent: true}, wire.Transaction(changesNothing)`,
			new:  `wire.Request{Op: 9, Urgent: true}, func(b []byte) []byte { return append(b, 0, 0, 0, 1, '/') }`,
		}},
		tests: []suite{{pkg: coord, run: "TestAHoldAtASupersededLeader"}},
	},
	{
		guard: "window: two writes prove a report, not one",
		edit: edit{
			decl: "Window.answered",
			old:  `w.advance(first.sent.Add(-w.lag))`,
			new:  `w.advance(sent.Add(-w.lag))`,
		},
		tests: []suite{{pkg: trusted, run: "TestNoScheduleBreaksTheTrust"}, {pkg: coord, run: "TestAHoldWhoseLastReportIsLost"}},
	},
	{
		guard: "window: the second write is sent when the first is acknowledged",
		edit: edit{
			decl: "Window.answered",
			old:  `first.write && !first.came.After(sent)`,
			new:  `first.write`,
		},
		tests: []suite{{pkg: trusted, run: "TestNoScheduleBreaksTheTrust"}},
	},
	{
		guard: "window: the first of the two is a write",
		edit: edit{
			decl: "Window.answered",
			old:  `first.write && !first.came.After(sent)`,
			new:  `!first.came.After(sent)`,
		},
		tests: []suite{{pkg: trusted, run: "TestNoScheduleBreaksTheTrust"}},
	},
	{
		guard: "window: the second of the two is a write",
		edit: edit{
			decl: "Window.answered",
			old:  `	if !write {`,
			new:  `	if false {`,
		},
		tests: []suite{{pkg: trusted, run: "TestNoScheduleBreaksTheTrust"}},
	},
	{
		guard: "window: a write is not its own second",
		edit: edit{
			decl: "Window.answered",
			old:  `defer w.keep(answer`,
			new:  `w.keep(answer`,
		},
		tests: []suite{{pkg: trusted, run: "TestNoScheduleBreaksTheTrust"}},
	},
	{
		guard: "window: reports reach the leader a ping interval late",
		edit: edit{
			decl: "Window.answered",
			old:  `first.sent.Add(-w.lag)`,
			new:  `first.sent`,
		},
		tests: []suite{{pkg: trusted, run: "TestNoScheduleBreaksTheTrust"}, {pkg: coord, run: "TestAHoldBehindAFollowerIsolatedBeforeItsReport"}},
	},
	{
		guard: "window: a follower heard of a request only when it was answered",
		edit: edit{
			decl: "Window.advance",
			old:  `if a.came.After(limit) {`,
			new:  `if a.sent.After(limit) {`,
		},
		tests: []suite{{pkg: trusted, run: "TestNoScheduleBreaksTheTrust"}, {pkg: coord, run: "TestAHoldBehindAFollowerIsolatedAfterAStallEndsBeforeTheNextIsGranted"}},
	},
	{
		guard: "window: a reconnect counts once a write was acknowledged",
		edit: edit{
			decl: "Window.Attach",
			old: `	w.attached = sent
}`,
			new: `	w.attached, w.base = sent, sent
}`,
		},
		tests: []suite{{pkg: trusted, run: "TestNoScheduleBreaksTheTrust"}},
	},
	{
		guard: "window: a margin for acting",
		edit: edit{
			decl: "Window.end",
			old:  `w.timeout - Skew(w.timeout) - Reaction(w.timeout)`,
			new:  `w.timeout - Skew(w.timeout)`,
		},
		tests: []suite{{pkg: trusted, run: "TestNoScheduleBreaksTheTrust"}, {pkg: coord, run: "TestAHoldEndsSomeTimeBeforeTheServerMay"}},
	},
	{
		guard: "window: clocks of different speed are allowed for",
		edit: edit{
			decl: "Window.end",
			old:  `w.timeout - Skew(w.timeout) - Reaction(w.timeout)`,
			new:  `w.timeout - Reaction(w.timeout)`,
		},
		tests: []suite{{pkg: trusted, run: "TestNoScheduleBreaksTheTrust"}},
	},
	{
		guard: "window: a leader may be late",
		edit: edit{
			decl: "Lag",
			old:  `tick/2 + min(tick/2, timeout/8)`,
			new:  `tick/2`,
		},
		tests: []suite{{pkg: trusted, run: "TestTheLagAllows"}},
	},
	{
		guard: "clock: suspends count",
		edit: edit{
			decl: "Clock.moment",
			old:  `now.Add(c.suspended())`,
			new:  `now`,
		},
		tests: []suite{{pkg: trusted, run: "TestNoScheduleBreaksTheTrust"}},
	},
	{
		guard: "clock: short suspends add up",
		edit: edit{
			decl: "meter.compare",
			old:  `gap > -jitter`,
			new:  `gap > time.Second`,
		},
		tests: []suite{{pkg: trusted, run: "TestSuspends"}},
	},
	{
		guard: "clock: a wall clock that is set back hides no suspend",
		edit: edit{
			decl: "meter.compare",
			old:  `gap > -jitter`,
			new:  `true`,
		},
		tests: []suite{{pkg: trusted, run: "TestAWallClock"}},
	},
	{
		guard: "window: probes while there are claims",
		edit: edit{
			decl: "Session.attend",
			old:  `if isUp && s.claims.Load() > 0 {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestAHoldLastsForHoursWhileNothingFails"}},
	},
	{
		guard: "window: its end ends holds",
		edit: edit{
			decl: "Client.lossBy",
			old:  `case change == session.WindowClosed:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: coord, run: "TestAHoldEndsBeforeTheServerGivesTheSessionUp"}},
	},
	{
		guard: "Err looks at the clock",
		edit: edit{
			decl: "Hold.causeOfLoss",
			old:  `case !time.Now().Before(cl.sess.Deadline()):`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: coord, run: "TestErrIsRightBeforeTheLossIsNoticed"}},
	},
	{
		guard: "Vouch: a grant needs an open window",
		edit: edit{
			decl: "claim.grant",
			old:  `if err := cl.sess.Vouch(ctx); err != nil {`,
			new:  `if err := error(nil); err != nil {`,
		},
		tests: []suite{{pkg: coord, run: "TestAWaiterWhoseWindowIsClosedIsGrantedItsTurnWhenItIsOpen"}},
	},
	{
		guard: "window: more probes where replies are slow",
		edit: edit{
			decl: "Window.Interval",
			old:  `interval /= 4`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestAHoldOverASlowConnection"}},
	},
}
