package main

// line is the order of the ones that wait.
var line = []mutant{
	{
		guard: "re-check: the rule is asked again after a wake-up",
		edit: edit{
			decl: "waiter.askWithout",
			old:  `if _, granted = w.rule(ahead); granted {`,
			new:  `if _, granted = ahead, true; granted {`,
		},
		tests: []suite{{pkg: coord, run: "TestTheLastOfThreeWaitsOn"}},
	},
	{
		guard: "a rule cannot see those that come after the claim",
		edit: edit{
			decl: "waiter.ask",
			old:  `ahead := all.line[:at:at]`,
			new:  `ahead := all.line[:at]`,
		},
		tests: []suite{{pkg: coord, run: "TestARuleSeesOnlyThoseAhead"}},
	},
	{
		guard: "re-check: a listing after a lost connection",
		edit: edit{
			decl: "tap.Ended",
			old:  `if w.armed {`,
			new:  `if w.armed && false {`,
		},
		tests: []suite{{pkg: coord, run: "TestAWaiterThatWasCutOffAtItsTurnLooksAgain"}},
	},
	{
		guard: "re-check: a listing after a writer's going",
		edit: edit{
			decl: "Line.mayReturn",
			old:  `return dialect.Replaceable(gone.Dialect, gone.Kind, l.has(dialect.Read))`,
			new:  `return false`,
		},
		tests: []suite{{pkg: rwlock, run: "TestAClaimBehindAWriterThatDowngradesWaitsForTheReader"}},
	},
	{
		guard: "shared listings: one that shows a writer that has gone says nothing",
		edit: edit{
			decl: "waiter.without",
			old:  `case w.cl.shape.Line.mayReturn(c):`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: rwlock, run: "TestManyOfOneClientBehindAWriterThatDowngrades"}},
	},
	{
		guard: "shared listings: the own node is in it",
		edit: edit{
			decl: "waiter.aheadNewly",
			old:  `if !there || at >= near || len(all.foreign) > 0 {`,
			new:  `if at >= near || there && len(all.foreign) > 0 {`,
		},
		tests: []suite{{pkg: coord, run: "TestAWaiterWhoseNodeMayBeGoneListsForItself"}},
	},
	{
		guard: "shared listings: the own node is known to be there since",
		edit: edit{
			decl: "waiter.aheadNewly",
			old:  `if names == nil || !cl.node.Known() {`,
			new:  `if names == nil {`,
		},
		tests: []suite{{pkg: coord, run: "TestAWaiterWhoseNodeMayBeGoneListsForItself"}},
	},
	{
		guard: "shared listings: a late foreigner is reported",
		edit: edit{
			decl: "waiter.aheadNewly",
			old:  `if !there || at >= near || len(all.foreign) > 0 {`,
			new:  `if !there || at >= near {`,
		},
		tests: []suite{{pkg: coord, run: "TestALateForeignerIsReportedToThoseWhoShare"}},
	},
	{
		guard: "shared listings: those that the rule names have not gone",
		edit: edit{
			decl: "waiter.askWithout",
			old:  `if !granted && slices.ContainsFunc(wait, unwatched) {`,
			new:  `if false && slices.ContainsFunc(wait, unwatched) {`,
		},
		tests: []suite{{pkg: coord, run: "TestAWaiterTakesTheListingOfANewcomer"}},
	},
	{
		guard: "shared listings: a writer that has gone is not taken out",
		edit: edit{
			decl: "waiter.aheadNewly",
			old:  `znode.Join(cl.shape.Line.Dir, c.Name)) && !cl.shape.Line.mayReturn(c)`,
			new:  `znode.Join(cl.shape.Line.Dir, c.Name))`,
		},
		tests: []suite{{pkg: rwlock, run: "TestManyOfOneClientBehindAWriterThatDowngrades"}},
	},
	{
		guard: "a claim behind many of its session: others may stand between",
		edit: edit{
			decl: "waiter.remember",
			old:  `if all && len(ahead) < near {`,
			new:  `if len(ahead) < near {`,
		},
		tests: []suite{{pkg: coord, run: "TestAClaimThatFollowsItsClientsOwn"}},
	},
	{
		guard: "a claim behind many of its session: these alone grant nothing",
		edit: edit{
			decl: "waiter.followOwn",
			old:  `return !granted`,
			new:  `return true`,
		},
		tests: []suite{{pkg: coord, run: "TestAClaimIsNotGrantedByItsClientsOwn"}},
	},
	{
		guard: "a claim behind many of its session: the end of the sequence numbers",
		edit: edit{
			decl: "claim.turn",
			old:  `if err := admit(cl.own()); err != nil {`,
			new:  `if err := admit(cl.own()); err != nil && cl.view != nil {`,
		},
		tests: []suite{{pkg: coord, run: "TestASequenceNearItsEndIsRefusedBehindMany"}},
	},
	{
		guard: "a claim behind many of its session does not list",
		edit: edit{
			decl: "waiter.followOwn",
			old: `if names == nil {
		return false`,
			new: `if names != nil || true {
		return false`,
		},
		tests: []suite{{pkg: coord, run: "TestAClaimBehindManyOfTheSameClient"}},
	},
	{
		guard: "shared listings: those that are gone are not ahead",
		edit: edit{
			decl: "waiter.without",
			old:  `case !slices.Contains(gone, znode.Join(w.cl.shape.Line.Dir, c.Name)):`,
			new:  `case true:`,
		},
		tests: []suite{{pkg: coord, run: "TestAWaiterTakesTheListingOfANewcomer"}},
	},
	{
		guard: "shared listings: none is kept for one waiter",
		edit: edit{
			decl: "Session.tidyLister",
			old:  `if len(of.sharers) < 2 {`,
			new:  `if len(of.sharers) < 0 {`,
		},
		tests: []suite{{pkg: inside, run: "TestAListingIsKeptOnlyWhileSeveral"}},
	},
	{
		guard: "the end of the sequence numbers",
		edit: edit{
			decl: "admit",
			old:  `if self.Sequence < 0 || self.Sequence >= sequenceLimit {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestASequenceNearItsEndIsRefused"}},
	},
	{
		guard: "the other dialect is refused",
		edit: edit{
			decl: "around",
			old:  `return foreign[:at], foreign[at:]`,
			new:  `return nil, foreign[at:]`,
		},
		tests: []suite{{pkg: coord, run: "TestAContenderOfTheOtherDialect"}},
	},
	{
		guard: "a claim is not refused for what is gone",
		edit: edit{
			decl: "waiter.ask",
			old:  `case len(before) > 0 && old:`,
			new:  `case false && old:`,
		},
		tests: []suite{{pkg: coord, run: "TestF56ATurnIsNotRefused"}},
	},
	{
		guard: "a claim that has waited is not refused",
		edit: edit{
			decl: "waiter.ask",
			old:  `case len(before) > 0 && w.waits:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: coord, run: "TestF56AClaimBehindManyOfTheSameClientWaits"}},
	},
	{
		guard: "a claim whose first listing was lost is not refused by a later one",
		edit: edit{
			decl: "claim.turn",
			old:  `(cl.view == nil || isPatient(ctx))`,
			new:  `isPatient(ctx)`,
		},
		tests: []suite{{pkg: coord, run: "TestF56AClaimWhoseFirstListing"}},
	},
	{
		guard: "a call that has waited is not refused when it joins again",
		edit: edit{
			decl: "Client.acquire",
			old:  `ctx = Patient(ctx)`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestF56ACallThatHasWaited"}},
	},
	{
		guard: "names of no known shape are ignored",
		edit: edit{
			decl: "curatorGUID",
			old:  `if len(body) > n && body[n] == '-' && isHex(body[:n], true) {`,
			new:  `if body[n] == '-' {`,
		},
		tests: []suite{{pkg: coord + "/internal/dialect", run: "TestNamesOfNoKnownShape"}},
	},
	{
		guard: "a claim that was joined earlier looks again before it is granted",
		edit: edit{
			decl: "claim.grant",
			old:  `switch err := cl.node.Look(ctx); {`,
			new:  `cl.node.Seen(); switch err := error(nil); {`,
		},
		tests: []suite{{pkg: coord, run: "TestAClaimThatDoesNotKnowOfItsNode"}},
	},
	{
		guard: "a claim that waited for its window looks again before it is granted",
		edit: edit{
			decl: "claim.grant",
			old:  `for known := false; !known; known = cl.node.Known() {`,
			new:  `for known := false; !known; known = true {`,
		},
		tests: []suite{{pkg: coord, run: "TestAClaimThatWaitsForItsWindow"}},
	},
}
