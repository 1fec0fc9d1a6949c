package main

// calls: what every call promises about its context and about unexpected
// answers, and which caller is told what.
var calls = []mutant{
	{
		guard: "watches: a failure that is older than the call is no answer to it",
		edit: edit{
			file: "coord/internal/session/watch.go",
			old:  `if a.watch.err != nil && a.shared {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestAWatchSeesWhat"}},
	},
	{
		guard: "window: a tick that is told is believed",
		edit: edit{
			file: "coord/internal/window/window.go",
			old:  `if tick == 0 {`,
			new:  `if true {`,
		},
		tests: []suite{{pkg: coord, run: "TestALongTickIsBelieved"}},
	},
	{
		guard: "losses: all holds are told before the observer is",
		edit: edit{
			file: "coord/events.go",
			old:  `			leave, tell = append(leave, l), append(tell, t)`,
			new: `			l()
			t()`,
		},
		tests: []suite{{pkg: coord, run: "TestAllHoldsEndBeforeTheObserverHearsOfALoss"}},
	},
	{
		guard: "losses: all holds are told before the first node is deleted",
		edit: edit{
			file: "coord/events.go",
			old:  `			leave, tell = append(leave, l), append(tell, t)`,
			new: `			l()
			tell = append(tell, t)`,
		},
		tests: []suite{{pkg: coord, run: "TestEveryHoldEndsBeforeTheFirst"}},
	},
	{
		guard: "the own watch is tried again whatever the server answers",
		edit: edit{
			file: "coord/internal/znode/watch.go",
			old:  `if err == nil || n.sess.Err() != nil {`,
			new:  `if err == nil || !isPassing(err) {`,
		},
		tests: []suite{{pkg: coord, run: "TestAServerThatStumblesOverTheOwnWatch"}},
	},
	{
		guard: "the deletion is tried again whatever the server answers",
		edit: edit{
			file: "coord/internal/znode/node.go",
			old: `		case errors.Is(err, session.ErrNoAuth):
			n.host.Tell(Stranded, n, err)`,
			new: `		case true:
			n.host.Tell(Stranded, n, err)`,
		},
		tests: []suite{{pkg: coord, run: "TestAServerThatStumblesOverTheDeletion"}},
	},
	{
		guard: "recovery: a named claim that was asked for is still known",
		edit: edit{
			file: "coord/internal/znode/create.go",
			old:  `	case n.host.IsRequest(node.Data):`,
			new:  `	case false:`,
		},
		tests: []suite{{pkg: coord, run: "TestANamedClaimThatIsAskedFor"}},
	},
	{
		guard: "nothing is sent for a context that has ended",
		edit: edit{
			file: "coord/internal/session/ops.go",
			old:  `case ctx.Err() != nil:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: coord, run: "TestNothingIsAskedOfTheServer"}},
	},
	{
		guard: "Do: a release does not outlive its context for long",
		edit: edit{
			file: "coord/do.go",
			old:  `releasing, cancel := Grace(ctx)`,
			new:  `releasing, cancel := ctx, func() {}`,
		},
		tests: []suite{{pkg: coord, run: "TestDoEndsWithItsContext"}},
	},
	{
		guard: "a context that ends during a release ends the release",
		edit: edit{
			file: "coord/do.go",
			old:  `if ctx.Value(boundKey{}) != nil {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestDoEndsWithAContext"}},
	},
	{
		guard: "Close waits for a server's answer, but not for long",
		edit: edit{
			file: "coord/internal/session/keeper.go",
			old:  `w.closeSession(min(closeLimit, s.Timeout()/handshakeShare))`,
			new:  `w.closeSession(s.Timeout())`,
		},
		tests: []suite{{pkg: coord, run: "TestCloseGivesAHungServer"}},
	},
	{
		guard: "double barrier: the chroot counts for what fits into a transaction",
		edit: edit{
			file: "coord/doublebarrier/barrier.go",
			old:  `len(client.Chroot())+len(path)`,
			new:  `len(path)`,
		},
		tests: []suite{{pkg: barrier, run: "TestAChrootCounts"}},
	},
	{
		guard: "inside of a hold: only claims of the same line concern it",
		edit: edit{
			file: "coord/acquire.go",
			old:  `case !ok || ctx.Err() != nil || !held.claim.shape.Line.has(spec.Kind):`,
			new:  `case !ok || ctx.Err() != nil:`,
		},
		tests: []suite{{pkg: coord, run: "TestAHoldOfAnotherLine"}},
	},
	{
		guard: "a request for a claim is written at its version",
		edit: edit{
			file: "coord/operate.go",
			old:  `_, err := c.Set(ctx, node, requestKeeping(kept, request), stat.Version)`,
			new:  `_, err := c.Set(ctx, node, requestKeeping(kept, request), -1)`,
		},
		tests: []suite{{pkg: coord, run: "TestNothingIsDoneToASuccessor"}},
	},
	{
		guard: "a claim is broken at its version",
		edit: edit{
			file: "coord/operate.go",
			old:  `return c.Delete(ctx, node, stat.Version)`,
			new:  `return c.Delete(ctx, node, -1)`,
		},
		tests: []suite{{pkg: coord, run: "TestNothingIsDoneToASuccessor"}},
	},
	{
		guard: "a claim is told from its successor by its czxid",
		edit: edit{
			file: "coord/operate.go",
			old:  `case !there, claim != 0 && stat.Czxid != claim:`,
			new:  `case !there:`,
		},
		tests: []suite{{pkg: coord, run: "TestNothingIsDoneToASuccessor|TestRevokeAndWaitForces"}},
	},
	{
		guard: "a claim that is waited for is gone when another has its name",
		edit: edit{
			file: "coord/operate.go",
			old:  `err == nil && czxid != 0 && stat.Czxid > czxid`,
			new:  `err == nil && stat.Czxid < 0`,
		},
		tests: []suite{{pkg: coord, run: "TestRevokeAndWaitEnds"}},
	},
	{
		guard: "a claim that may heed the bare request only gets that",
		edit: edit{
			file: "coord/operate.go",
			old:  `if !namesOwner(kept) {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestARequestIsBareUnless"}},
	},
	{
		guard: "election: a request does not take back what was proclaimed meanwhile",
		edit: edit{
			file: "coord/operate.go",
			old:  `requestKeeping(OwnData(data), request), stat.Version)`,
			new:  `requestKeeping(OwnData(data), request), -1)`,
		},
		tests: []suite{{pkg: elect, run: "TestARequestKeepsWhatTheLeader"}},
	},
	{
		guard: "what is no claim is not revoked",
		edit: edit{
			file: "coord/operate.go",
			old:  `if stat.Owner == 0 || stat.Owner == containers {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestWhatIsNoClaim"}},
	},
}
