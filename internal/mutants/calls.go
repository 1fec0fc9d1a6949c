package main

// calls: what every call promises about its context and about unexpected
// answers, and which caller is told what.
var calls = []mutant{
	{
		guard: "watches: a failure that is older than the call is no answer to it",
		edit: edit{
			decl: "Session.Await",
			old:  `if a.watch.err != nil && a.shared {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestAWatchSeesWhat"}},
	},
	{
		guard: "window: a tick that is told is believed",
		edit: edit{
			decl: "Lag",
			old:  `if tick == 0 {`,
			new:  `if true {`,
		},
		tests: []suite{{pkg: coord, run: "TestALongTickIsBelieved"}},
	},
	{
		guard: "losses: all holds are told before the observer is",
		edit: edit{
			decl: "Client.notify",
			old:  `			leave, tell = append(leave, l), append(tell, t)`,
			new: `			l()
			t()`,
		},
		tests: []suite{{pkg: coord, run: "TestAllHoldsEndBeforeTheObserverHearsOfALoss"}},
	},
	{
		guard: "losses: all holds are told before the first node is deleted",
		edit: edit{
			decl: "Client.notify",
			old:  `			leave, tell = append(leave, l), append(tell, t)`,
			new: `			l()
			tell = append(tell, t)`,
		},
		tests: []suite{{pkg: coord, run: "TestEveryHoldEndsBeforeTheFirst"}},
	},
	{
		guard: "the own watch is tried again whatever the server answers",
		edit: edit{
			decl: "Node.Watch",
			old:  `if err == nil || n.sess.Err() != nil {`,
			new:  `if err == nil || !isPassing(err) {`,
		},
		tests: []suite{{pkg: coord, run: "TestAServerThatStumblesOverTheOwnWatch"}},
	},
	{
		guard: "the deletion is tried again whatever the server answers",
		edit: edit{
			decl: "Node.Delete",
			old: `		case errors.Is(err, wire.ErrNoAuth):
			n.host.Tell(Stranded, n, err)`,
			new: `		case true:
			n.host.Tell(Stranded, n, err)`,
		},
		tests: []suite{{pkg: coord, run: "TestAServerThatStumblesOverTheDeletion"}},
	},
	{
		guard: "recovery: a named claim that was asked for is still known",
		edit: edit{
			decl: "Node.examine",
			old:  `	case n.host.IsRequest(node.Data):`,
			new:  `	case false:`,
		},
		tests: []suite{{pkg: coord, run: "TestANamedClaimThatIsAskedFor"}},
	},
	{
		guard: "nothing is sent for a context that has ended",
		edit: edit{
			decl: "Session.awaitUp",
			old:  `case ctx.Err() != nil:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: coord, run: "TestNothingIsAskedOfTheServer"}},
	},
	{
		guard: "Do: a release does not outlive its context for long",
		edit: edit{
			decl: "Do",
			old:  `releasing, cancel := Grace(ctx)`,
			new:  `releasing, cancel := ctx, func() {}`,
		},
		tests: []suite{{pkg: coord, run: "TestDoEndsWithItsContext"}},
	},
	{
		guard: "a context that ends during a release ends the release",
		edit: edit{
			decl: "bound",
			old:  `if ctx.Value(boundKey{}) != nil {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestDoEndsWithAContext"}},
	},
	{
		guard: "Close waits for a server's answer, but not for long",
		edit: edit{
			decl: "Session.closeInOrder",
			old:  `w.CloseSession(min(closeLimit, s.Timeout()/handshakeShare))`,
			new:  `w.CloseSession(s.Timeout())`,
		},
		tests: []suite{{pkg: coord, run: "TestCloseGivesAHungServer"}},
	},
	{
		guard: "double barrier: the chroot counts for what fits into a transaction",
		edit: edit{
			decl: "New",
			old:  `len(client.Chroot())+len(path)`,
			new:  `len(path)`,
		},
		tests: []suite{{pkg: barrier, run: "TestAChrootCounts"}},
	},
	{
		guard: "inside of a hold: only claims of the same line concern it",
		edit: edit{
			decl: "Client.inside",
			old:  `case !ok || ctx.Err() != nil || !held.claim.shape.Line.has(spec.Kind):`,
			new:  `case !ok || ctx.Err() != nil:`,
		},
		tests: []suite{{pkg: coord, run: "TestAHoldOfAnotherLine"}},
	},
	{
		guard: "a request for a claim is written at its version",
		edit: edit{
			decl: "ask",
			old:  `_, err := c.Set(ctx, node, dialect.Request(c.Dialect(), kept), stat.Version)`,
			new:  `_, err := c.Set(ctx, node, dialect.Request(c.Dialect(), kept), -1)`,
		},
		tests: []suite{{pkg: coord, run: "TestNothingIsDoneToASuccessor"}},
	},
	{
		guard: "a claim is broken at its version",
		edit: edit{
			decl: "breakClaim",
			old:  `err := c.Delete(ctx, node, stat.Version)`,
			new:  `err := c.Delete(ctx, node, -1)`,
		},
		tests: []suite{{pkg: coord, run: "TestNothingIsDoneToASuccessor"}},
	},
	{
		guard: "a claim is told from its successor by its czxid",
		edit: edit{
			decl: "toClaim",
			old:  `case !there, claim != 0 && stat.Czxid != claim:`,
			new:  `case !there:`,
		},
		tests: []suite{{pkg: coord, run: "TestNothingIsDoneToASuccessor|TestRevokeAndWaitForces"}},
	},
	{
		guard: "a claim that is waited for is gone when another has its name",
		edit: edit{
			decl: "awaitGone",
			old:  `err == nil && stat.Czxid > czxid`,
			new:  `err == nil && stat.Czxid < 0`,
		},
		tests: []suite{{pkg: coord, run: "TestRevokeAndWaitEnds"}},
	},
	{
		guard: "a claim that may heed the bare request only gets that",
		edit: edit{
			decl: "ask",
			old:  `if !dialect.NamesOwner(kept) {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestARequestIsBareUnless"}},
	},
	{
		guard: "election: a request does not take back what was proclaimed meanwhile",
		edit: edit{
			decl: "note",
			old:  `dialect.Request(c.Dialect(), dialect.Own(data)), stat.Version)`,
			new:  `dialect.Request(c.Dialect(), dialect.Own(data)), -1)`,
		},
		tests: []suite{{pkg: elect, run: "TestARequestKeepsWhatTheLeader"}},
	},
	{
		guard: "what is no claim is not revoked",
		edit: edit{
			decl: "ask",
			old:  `if stat.Owner == 0 || stat.Owner == containers {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestWhatIsNoClaim"}},
	},
}
