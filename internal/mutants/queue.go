package main

// queue is the queue: which consumer has an item, and which hear of it.
var queue = []mutant{
	{
		guard: "queue: an ack removes only what its receiver still has",
		edit: edit{
			decl: "Item.Ack",
			old:  `return i.finish(ctx, "ack", coord.DeleteOp(i.queue.entry(i.name), i.version))`,
			new:  `return i.finish(ctx, "ack", coord.DeleteOp(i.queue.entry(i.name), -1))`,
		},
		tests: []suite{{pkg: items, run: "TestAnAckOfAnItemThatAnotherHas"}},
	},
	{
		guard: "queue: a nack gives back only what its receiver still has",
		edit: edit{
			decl: "Item.Nack",
			old:  `own := coord.CheckOp(i.queue.entry(i.name), i.version)`,
			new:  `own := coord.CheckOp(i.queue.entry(i.name), -1)`,
		},
		tests: []suite{{pkg: items, run: "TestANackOfAnItemThatAnotherHas"}},
	},
	{
		guard: "queue: a claim is of the entry as it was read",
		edit: edit{
			decl: "Queue.claimAll",
			old:  `coord.SetOp(q.entry(e.name), e.data, e.stat.Version)`,
			new:  `coord.SetOp(q.entry(e.name), e.data, -1)`,
		},
		tests: []suite{{pkg: items, run: "TestADeliveryBetween"}},
	},
	{
		guard: "queue: a take is of the entry as it was read",
		edit: edit{
			decl: "Queue.remove",
			old:  `coord.DeleteOp(q.entry(e.name), e.stat.Version)`,
			new:  `coord.DeleteOp(q.entry(e.name), -1)`,
		},
		tests: []suite{{pkg: items, run: "TestATakeDeliversNothingBeyond"}},
	},
	{
		guard: "queue: a take takes nothing that is claimed",
		edit: edit{
			decl: "Queue.remove",
			old: `		coord.CreateOp(q.claim(e.name), nil, coord.Ephemeral),
		coord.DeleteOp(q.claim(e.name), -1),
`,
			new: ``,
		},
		tests: []suite{{pkg: items, run: "TestTryForms"}},
	},
	{
		guard: "queue: a claim is deleted only while it is the own",
		edit: edit{
			decl: "Queue.claimAll",
			old:  `Proof: []coord.Op{coord.CheckOp(q.entry(item.name), item.version)},`,
			new:  ``,
		},
		tests: []suite{{pkg: items, run: "TestANackOfAnItemThatAnotherHas|TestAnAckOf"}},
	},
	{
		guard: "queue: what is given back with a delay is acknowledged no more",
		edit: edit{
			decl: "dispatcher.isParked",
			old:  `return item.parked != nil`,
			new:  `return false`,
		},
		tests: []suite{{pkg: items, run: "TestAnItemIsAckedOrNackedOnce"}},
	},
	{
		guard: "queue: no consumer waits without knowing of the claims",
		edit: edit{
			decl: "dispatcher.list",
			old:  `if free > 0 || contended || len(entries.names) == 0 {`,
			new:  `if true {`,
		},
		tests: []suite{{pkg: items, run: "TestAnItemComesBackToThoseWhoWaitBesideItsReceiver"}},
	},
	{
		guard: "queue: waiters of the same object hear of an item that comes back",
		edit: edit{
			decl: "dispatcher.wake",
			old: `	close(d.returned)
	d.returned = make(chan struct{})`,
			new: ``,
		},
		tests: []suite{{pkg: items, run: "TestWhatOneConsumerFailsToObtain"}},
	},
	{
		guard: "queue: claims of several names whose reply was lost are found by any of them",
		edit: edit{
			decl: "CreateAll",
			old:  `			if czxid != 0 {`,
			new:  `			if czxid = nodes[0].czxid; czxid != 0 {`,
		},
		tests: []suite{{pkg: coord, run: "TestClaimsOfSeveralNamesAreFoundByAnyOfThem"}},
	},
	{
		guard: "queue: claims of several names are looked for when their reply was lost",
		edit: edit{
			decl: "CreateAll",
			old: `		if lost {
			var czxid int64`,
			new: `		if false {
			var czxid int64`,
		},
		tests: []suite{{pkg: coord, run: "TestClaimsOfSeveralNamesAndTheirRelease"}},
	},
	{
		guard: "queue: claims of several names that are given up leave no node",
		edit: edit{
			decl: "together.abandon",
			old:  `		if err == nil || cl.node.Path() != "" {`,
			new:  `		if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestClaimsOfSeveralNamesThatAreGivenUp"}},
	},
	{
		guard: "queue: a hold that the release of its group finds lost is lost",
		edit: edit{
			decl: "ExactlyOnce.release",
			old:  `		gone.claim.lose(ErrNodeDeleted, true)`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestAReleaseOfAGroup"}},
	},
	{
		guard: "queue: an ack of many removes nothing of another queue object's",
		edit: edit{
			decl: "Queue.AckBatch",
			old:  `if i.queue != q {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: items, run: "TestAnAckOfManyRemovesNothing"}},
	},
	{
		guard: "queue: those who wait for a place hear of what was claimed ahead",
		edit: edit{
			decl: "dispatcher.offer",
			old:  `range d.inLine[:n] {`,
			new:  `range d.inLine[:0] {`,
		},
		tests: []suite{{pkg: items, run: "TestWhatIsPrefetchedGoesToThoseWhoStandInLine"}},
	},
	{
		guard: "queue: what a receiver was called for and leaves goes to another",
		edit: edit{
			decl: "serve",
			old:  `r.offer() // to another, what it was called for`,
			new:  ``,
		},
		tests: []suite{{pkg: items, run: "TestWhatIsPrefetchedGoesToAnother"}},
	},
	{
		guard: "queue: an urgent item that this object put is the next",
		edit: edit{
			decl: "dispatcher.overtaken",
			old:  `if n := len(d.names); n > 0 && by < priority(d.names[n-1]) {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: items, run: "TestAnUrgentItem"}},
	},
	{
		guard: "queue: a try looks again before it says that there is nothing",
		edit: edit{
			decl: "receiver.candidate",
			old:  `case !r.looked:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: items, run: "TestATryFindsWhatWasPut"}},
	},
	{
		guard: "queue: the second in line looks when the first does not",
		edit: edit{
			decl: "receiver.givesWay",
			old:  `v.At(r.turn)`,
			new:  ``,
		},
		tests: []suite{{pkg: items, run: "TestWhenTheFirstInLineStandsStill"}},
	},
	{
		guard: "queue: nothing is put near the end of the sequence numbers",
		edit: edit{
			decl: "Queue.send",
			old:  `!isEntry(name) || sequence(name) >= sequenceLimit {`,
			new:  `!isEntry(name) {`,
		},
		tests: []suite{{pkg: items, run: "TestNothingIsPutWhenTheSequenceNumbers"}},
	},
	{
		guard: "queue: a claim that was asked for is still its receiver's",
		edit: edit{
			decl: "Node.Rewritten",
			old:  `case node.Stat.Owner != n.sess.ID():`,
			new:  `case true:`,
		},
		tests: []suite{{pkg: items, run: "TestAClaimThatWasAskedForIsAckedAllTheSame"}},
	},
	{
		guard: "what does not fit into a batch is still to be had",
		edit: edit{
			decl: "dispatcher.fit",
			old:  `		d.report(errNotTried, all[n:]...)`,
			new:  ``,
		},
		tests: []suite{{pkg: items, run: "TestWhatDoesNotFitIntoABatch"}},
	},
	{
		guard: "what was read along with an item that cannot be had is still to be had",
		edit: edit{
			decl: "attempt",
			old:  `		r.report(errNotTried, e.with...)`,
			new:  ``,
		},
		tests: []suite{{pkg: items, run: "TestWhenTheFirstOfABatchIsADeadLetter"}},
	},
	{
		guard: "an item that may not be had is passed over",
		edit: edit{
			decl: "dispatcher.read",
			old:  `	case errors.Is(err, coord.ErrNoAuth):`,
			new:  `	case false:`,
		},
		tests: []suite{{pkg: items, run: "TestItemsThatMayNotBeHad"}},
	},
	{
		guard: "an item that may not be had is tried again",
		edit: edit{
			decl: "dispatcher.report",
			old:  `time.AfterFunc(deniedFor, func() { d.report(errNotTried, candidates...) })`,
			new:  ``,
		},
		tests: []suite{{pkg: items, run: "TestAnItemThatMayNotBeHadIsTriedAgain"}},
	},
	{
		guard: "a consumer's former node is no other consumer",
		edit: edit{
			decl: "census.find",
			old:  `return name != own && strings.HasPrefix(name, c.id)`,
			new:  `return false && strings.HasPrefix(name, c.id)`,
		},
		tests: []suite{{pkg: items, run: "TestAConsumerAloneReceivesInOrderAlso"}},
	},
}
