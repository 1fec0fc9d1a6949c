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
		tests: []suite{{pkg: coord, run: "TestAHoldAtASupersededLeader"}},
	},
	{
		guard: "window: touches reach the leader half a tick late",
		edit: edit{
			file: "coord/internal/window/window.go",
			old:  `sent.Add(-t.lag), 0`,
			new:  `sent, 0`,
		},
		tests: []suite{{pkg: coord, run: "TestAHoldBehindAFollowerIsolatedBeforeItsReport"}},
	},
	{
		guard: "window: a follower heard of a request only when it was answered",
		edit: edit{
			file: "coord/internal/window/window.go",
			old:  `answer{sent, now}`,
			new:  `answer{sent, sent}`,
		},
		tests: []suite{{pkg: coord, run: "TestAHoldBehindAFollowerIsolatedAfterAStallEndsBeforeTheNextIsGranted"}},
	},
	{
		guard: "window: a reconnect counts once a write was acknowledged",
		edit: edit{
			file: "coord/internal/window/window.go",
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
			file: "coord/internal/window/window.go",
			old:  `return t.timeout / 50 }`,
			new:  `return 0 }`,
		},
		tests: []suite{{pkg: coord, run: "TestAHoldEndsSomeTimeBeforeTheServerMay"}},
	},
	{
		guard: "window: time asleep counts",
		edit: edit{
			file: "coord/internal/window/window.go",
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
		guard: "window: a write sent before a reconnect does not prove it",
		edit: edit{
			file: "coord/internal/window/window.go",
			old:  `if t.attached.After(t.base) && !t.attached.After(sent) {`,
			new:  `if t.attached.After(t.base) {`,
		},
		tests: []suite{{pkg: inside, run: "TestAWriteSentBeforeTheReconnect"}},
	},
	{
		guard: "window: time asleep while a request was under way counts",
		edit: edit{
			file: "coord/internal/window/window.go",
			old:  `sent = sent.Add(-slept)`,
			new:  ``,
		},
		tests: []suite{{pkg: inside, run: "TestTimeAsleep"}},
	},
	{
		guard: "window: more probes where replies are slow",
		edit: edit{
			file: "coord/internal/session/keeper.go",
			old:  `interval /= 4`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestAHoldOverASlowConnection"}},
	},
}
