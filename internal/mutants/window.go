package main

// window is until when a session can be trusted.
var window = []mutant{
	{
		guard: "a session that no server confirms for T is given up",
		edit: edit{
			file: "coord/internal/session/keeper.go",
			old:  `if left <= 0 {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestASessionThatNoServerConfirmsAnyMore"}},
	},
	{
		guard: "window: only writes prove anything",
		edit: edit{
			file: "coord/internal/session/session.go",
			old:  `s.window.Answer(r.moment, s.clock.Now(), isWrite(r.op) && committed(code))`,
			new:  `s.window.Answer(r.moment, s.clock.Now(), committed(code))`,
		},
		tests: []suite{{pkg: coord, run: "TestAHoldWhoseClientReadsFromAnIsolatedFollowerEndsBeforeTheNextIsGranted"}},
	},
	{
		guard: "window: hears of every transaction",
		edit: edit{
			file: "coord/internal/session/wire.go",
			old:  `r.op != opMulti && r.sent`,
			new:  `r.sent`,
		},
		tests: []suite{{pkg: inside, run: "TestTheWindowHears"}},
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
		}, {
			file: "coord/internal/session/probe.go",
			old:  `_, _ = w.Write(probeFrame(xid))`,
			new:  `_, _ = w.Write(withLength(appendString(appendInt32(appendInt32(nil, xid), 9), "/")))`,
		}},
		tests: []suite{{pkg: coord, run: "TestAHoldAtASupersededLeader"}},
	},
	{
		guard: "window: two writes prove a report, not one",
		edit: edit{
			file: "coord/internal/window/window.go",
			old:  `w.advance(first.sent.Add(-w.lag))`,
			new:  `w.advance(sent.Add(-w.lag))`,
		},
		tests: []suite{{pkg: trusted, run: "TestNoScheduleBreaksTheTrust"}, {pkg: coord, run: "TestAHoldWhoseLastReportIsLost"}},
	},
	{
		guard: "window: the second write is sent when the first is acknowledged",
		edit: edit{
			file: "coord/internal/window/window.go",
			old:  `first.write && !first.came.After(sent)`,
			new:  `first.write`,
		},
		tests: []suite{{pkg: trusted, run: "TestNoScheduleBreaksTheTrust"}},
	},
	{
		guard: "window: the first of the two is a write",
		edit: edit{
			file: "coord/internal/window/window.go",
			old:  `first.write && !first.came.After(sent)`,
			new:  `!first.came.After(sent)`,
		},
		tests: []suite{{pkg: trusted, run: "TestNoScheduleBreaksTheTrust"}},
	},
	{
		guard: "window: the second of the two is a write",
		edit: edit{
			file: "coord/internal/window/window.go",
			old:  `	if !write {`,
			new:  `	if false {`,
		},
		tests: []suite{{pkg: trusted, run: "TestNoScheduleBreaksTheTrust"}},
	},
	{
		guard: "window: a write is not its own second",
		edit: edit{
			file: "coord/internal/window/window.go",
			old:  `defer w.keep(answer`,
			new:  `w.keep(answer`,
		},
		tests: []suite{{pkg: trusted, run: "TestNoScheduleBreaksTheTrust"}},
	},
	{
		guard: "window: reports reach the leader a ping interval late",
		edit: edit{
			file: "coord/internal/window/window.go",
			old:  `first.sent.Add(-w.lag)`,
			new:  `first.sent`,
		},
		tests: []suite{{pkg: trusted, run: "TestNoScheduleBreaksTheTrust"}, {pkg: coord, run: "TestAHoldBehindAFollowerIsolatedBeforeItsReport"}},
	},
	{
		guard: "window: a follower heard of a request only when it was answered",
		edit: edit{
			file: "coord/internal/window/window.go",
			old:  `if a.came.After(limit) {`,
			new:  `if a.sent.After(limit) {`,
		},
		tests: []suite{{pkg: trusted, run: "TestNoScheduleBreaksTheTrust"}, {pkg: coord, run: "TestAHoldBehindAFollowerIsolatedAfterAStallEndsBeforeTheNextIsGranted"}},
	},
	{
		guard: "window: a reconnect counts once a write was acknowledged",
		edit: edit{
			file: "coord/internal/window/window.go",
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
			file: "coord/internal/window/window.go",
			old:  `w.timeout - Skew(w.timeout) - Reaction(w.timeout)`,
			new:  `w.timeout - Skew(w.timeout)`,
		},
		tests: []suite{{pkg: trusted, run: "TestNoScheduleBreaksTheTrust"}, {pkg: coord, run: "TestAHoldEndsSomeTimeBeforeTheServerMay"}},
	},
	{
		guard: "window: clocks of different speed are allowed for",
		edit: edit{
			file: "coord/internal/window/window.go",
			old:  `w.timeout - Skew(w.timeout) - Reaction(w.timeout)`,
			new:  `w.timeout - Reaction(w.timeout)`,
		},
		tests: []suite{{pkg: trusted, run: "TestNoScheduleBreaksTheTrust"}},
	},
	{
		guard: "window: a leader may be late",
		edit: edit{
			file: "coord/internal/window/window.go",
			old:  `tick/2 + min(tick/2, timeout/8)`,
			new:  `tick/2`,
		},
		tests: []suite{{pkg: trusted, run: "TestTheLagAllows"}},
	},
	{
		guard: "clock: suspends count",
		edit: edit{
			file: "coord/internal/window/clock.go",
			old:  `now.Add(c.suspended())`,
			new:  `now`,
		},
		tests: []suite{{pkg: trusted, run: "TestNoScheduleBreaksTheTrust"}},
	},
	{
		guard: "clock: short suspends add up",
		edit: edit{
			file: "coord/internal/window/clock.go",
			old:  `gap > -jitter`,
			new:  `gap > time.Second`,
		},
		tests: []suite{{pkg: trusted, run: "TestSuspends"}},
	},
	{
		guard: "clock: a wall clock that is set back hides no suspend",
		edit: edit{
			file: "coord/internal/window/clock.go",
			old:  `gap > -jitter`,
			new:  `true`,
		},
		tests: []suite{{pkg: trusted, run: "TestAWallClock"}},
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
		guard: "window: its end ends holds",
		edit: edit{
			file: "coord/claim.go",
			old:  `case change == session.WindowClosed:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: coord, run: "TestAHoldEndsBeforeTheServerGivesTheSessionUp"}},
	},
	{
		guard: "Err looks at the clock",
		edit: edit{
			file: "coord/hold.go",
			old:  `case !time.Now().Before(cl.sess.Deadline()):`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: coord, run: "TestErrIsRightBeforeTheLossIsNoticed"}},
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
		guard: "window: more probes where replies are slow",
		edit: edit{
			file: "coord/internal/window/window.go",
			old:  `interval /= 4`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestAHoldOverASlowConnection"}},
	},
}
