package main

// holds is how a hold hears of its end.
var holds = []mutant{
	{
		guard: "a hold watches its own node",
		edit: edit{
			decl: "Client.join",
			old:  `	cl.node.WatchSoon()`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestAHoldWhoseNodeIsDeletedByHand"}},
	},
	{
		guard: "a waiter watches its own node",
		edit: edit{
			decl: "Client.join",
			old:  `	cl.node.WatchSoon()`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestAWaiterWhoseNodeIsDeletedByHand"}},
	},
	{
		guard: "a waiter that is far from its turn watches its own node, too",
		edit: edit{
			decl: "watchDelay",
			old:  `watchLater = 250 * time.Millisecond`,
			new:  `watchLater = time.Hour`,
		},
		tests: []suite{{pkg: coord, run: "TestAWaiterWhoseNodeIsDeletedByHand"}},
	},
	{
		guard: "a node that was seen again is watched soon",
		edit: edit{
			decl: "Node.Seen",
			old:  `n.putOff(watchDelay)`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestAHoldThatWasFarFromItsTurn"}},
	},
	{
		guard: "a claim that is left ends the wait for its turn",
		edit: edit{
			decl: "claim.beginRemoval",
			old:  `	cl.left.Close()`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestAWaitForTheTurnOfAClaimThatIsLeft"}},
	},
	{
		guard: "a window found closed ends no hold that is granted since",
		edit: edit{
			decl: "claim.losing",
			old:  `time.Now().Before(cl.sess.Deadline())`,
			new:  `false`,
		},
		tests: []suite{{pkg: coord, run: "TestAHoldGrantedSinceTheWindow"}},
	},
	{
		guard: "the end of the session ends claims",
		edit: edit{
			decl: "Client.lossBy",
			old:  `case change == session.Over:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: coord, run: "TestAHoldIsLostWithItsSession"}},
	},
	{
		guard: "a transaction of a hold checks the hold's node",
		edit: edit{
			decl: "Hold.txn",
			old:  `append([]Op{CheckOp(cl.path(), cl.node.Version())}, ops...)`,
			new:  `append([]Op{CheckOp("/", -1)}, ops...)`,
		},
		tests: []suite{{pkg: coord, run: "TestATxnOfALostHoldWritesNothing"}},
	},
	{
		guard: "a hold's own watch sees whose the node is",
		edit: edit{
			decl: "Node.heed",
			old:  `case w.Stat.Owner != n.sess.ID():`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: coord, run: "TestAHoldWhoseNameIsAnothers"}},
	},
	{
		guard: "with LoseAtDisconnect a hold ends with its connection",
		edit: edit{
			decl: "Client.lossBy",
			old:  `case change == session.Down && c.opts.dropping:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: coord, run: "TestWithLoseAtDisconnectAHold"}},
	},
	{
		guard: "with LoseAtDisconnect nothing is granted without a connection",
		edit: edit{
			decl: "Hold.causeOfLoss",
			old:  `case cl.client.opts.dropping && !cl.sess.Connected():`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: coord, run: "TestWithLoseAtDisconnectNothing"}},
	},
	{
		guard: "holds end before the client closes its session",
		edit: edit{
			decl: "Keeper.run",
			old: `		k.cfg.Notify(Over, s)
		if k.stop.Err() != nil {
			s.closeInOrder()
		}`,
			new: `		if k.stop.Err() != nil {
			s.closeInOrder()
		}
		k.cfg.Notify(Over, s)`,
		},
		tests: []suite{{pkg: coord, run: "TestAHoldHasEndedWhenTheServerHears"}},
	},
	{
		guard: "a release whose deletion fails at once is repeated",
		edit: edit{
			decl: "claim.atOnce",
			old:  `if err == nil || cl.sess.Go(remove) != nil {`,
			new:  `if true {`,
		},
		tests: []suite{{pkg: coord, run: "TestAServerThatStumblesOverTheDeletion"}},
	},
	{
		guard: "a release tells another's node of the same name from its own",
		edit: edit{
			decl: "claim.atOnce",
			old:  ` || cl.node.Spec.Shared {`,
			new:  ` {`,
		},
		tests: []suite{{pkg: coord, run: "TestAReleaseLeavesTheNodeAloneThatIsAnothers"}},
	},
	{
		guard: "a node is deleted with the last of its handles",
		edit: edit{
			decl: "Hold.giveUp",
			old:  `	if !last {`,
			new:  `	if !last && false {`,
		},
		tests: []suite{{pkg: coord, run: "TestNestedHandles"}},
	},
}
