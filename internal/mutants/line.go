package main

// line is the order of those that wait.
var line = []mutant{
	{
		guard: "re-check: the rule is asked again after a wake-up",
		edit: edit{
			file: "coord/turn.go",
			old:  `if _, granted = w.rule(ahead); granted {`,
			new:  `if _, granted = ahead, true; granted {`,
		},
		tests: []suite{{pkg: coord, run: "TestTheLastOfThreeWaitsOn"}},
	},
	{
		guard: "a rule cannot see those that come after the claim",
		edit: edit{
			file: "coord/turn.go",
			old:  `ahead := all.line[:at:at]`,
			new:  `ahead := all.line[:at]`,
		},
		tests: []suite{{pkg: coord, run: "TestARuleSeesOnlyThoseAhead"}},
	},
	{
		guard: "re-check: a listing after a lost connection",
		edit: edit{
			file: "coord/internal/session/wire.go",
			old:  `for a := range w.watches {`,
			new:  `for a := range map[armed]struct{}{} {`,
		},
		tests: []suite{{pkg: coord, run: "TestAWaiterThatWasCutOffAtItsTurnLooksAgain"}},
	},
	{
		guard: "re-check: a listing after a writer's going",
		edit: edit{
			file: "coord/line.go",
			old:  `return gone.Kind == kindWrite || gone.Dialect == Kazoo && l.has(kindRead)`,
			new:  `return false`,
		},
		tests: []suite{{pkg: rwlock, run: "TestAClaimBehindAWriterThatDowngradesWaitsForTheReader"}},
	},
	{
		guard: "shared listings: one that shows a writer that has gone says nothing",
		edit: edit{
			file: "coord/turn.go",
			old:  `case w.cl.shape.Line.mayReturn(c):`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: rwlock, run: "TestManyOfOneClientBehindAWriterThatDowngrades"}},
	},
	{
		guard: "shared listings: the own node is in it",
		edit: edit{
			file: "coord/turn.go",
			old:  `if !there || at >= near || len(all.foreign) > 0 {`,
			new:  `if at >= near || there && len(all.foreign) > 0 {`,
		},
		tests: []suite{{pkg: coord, run: "TestAWaiterWhoseNodeMayBeGoneListsForItself"}},
	},
	{
		guard: "shared listings: the own node is known to be there since",
		edit: edit{
			file: "coord/turn.go",
			old:  `if names == nil || !cl.node.Known() {`,
			new:  `if names == nil {`,
		},
		tests: []suite{{pkg: coord, run: "TestAWaiterWhoseNodeMayBeGoneListsForItself"}},
	},
	{
		guard: "shared listings: a late foreigner is reported",
		edit: edit{
			file: "coord/turn.go",
			old:  `if !there || at >= near || len(all.foreign) > 0 {`,
			new:  `if !there || at >= near {`,
		},
		tests: []suite{{pkg: coord, run: "TestALateForeignerIsReportedToThoseWhoShare"}},
	},
	{
		guard: "shared listings: those that the rule names have not gone",
		edit: edit{
			file: "coord/turn.go",
			old:  `if !granted && slices.ContainsFunc(wait, unwatched) {`,
			new:  `if false && slices.ContainsFunc(wait, unwatched) {`,
		},
		tests: []suite{{pkg: coord, run: "TestAWaiterTakesTheListingOfANewcomer"}},
	},
	{
		guard: "shared listings: a writer that has gone is not taken out",
		edit: edit{
			file: "coord/turn.go",
			old:  `znode.Join(cl.shape.Line.Dir, c.Name)) && !cl.shape.Line.mayReturn(c)`,
			new:  `znode.Join(cl.shape.Line.Dir, c.Name))`,
		},
		tests: []suite{{pkg: rwlock, run: "TestManyOfOneClientBehindAWriterThatDowngrades"}},
	},
	{
		guard: "a claim behind many of its session: others may stand between",
		edit: edit{
			file: "coord/turn.go",
			old:  `if all && len(ahead) < near {`,
			new:  `if len(ahead) < near {`,
		},
		tests: []suite{{pkg: coord, run: "TestAClaimThatFollowsItsClientsOwn"}},
	},
	{
		guard: "a claim behind many of its session: these alone grant nothing",
		edit: edit{
			file: "coord/turn.go",
			old:  `return !granted`,
			new:  `return true`,
		},
		tests: []suite{{pkg: coord, run: "TestAClaimIsNotGrantedByItsClientsOwn"}},
	},
	{
		guard: "a claim behind many of its session: the end of the sequence numbers",
		edit: edit{
			file: "coord/turn.go",
			old:  `if _, err := admit(own, nil); err != nil || cl.view != nil || w.rule == nil {`,
			new:  `if cl.view != nil || w.rule == nil {`,
		},
		tests: []suite{{pkg: coord, run: "TestASequenceNearItsEndIsRefusedBehindMany"}},
	},
	{
		guard: "a claim behind many of its session does not list",
		edit: edit{
			file: "coord/turn.go",
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
			file: "coord/turn.go",
			old:  `case !slices.Contains(gone, znode.Join(w.cl.shape.Line.Dir, c.Name)):`,
			new:  `case true:`,
		},
		tests: []suite{{pkg: coord, run: "TestAWaiterTakesTheListingOfANewcomer"}},
	},
	{
		guard: "shared listings: none is kept for one waiter",
		edit: edit{
			file: "coord/internal/session/listing.go",
			old:  `if len(of.sharers) < 2 {`,
			new:  `if len(of.sharers) < 0 {`,
		},
		tests: []suite{{pkg: inside, run: "TestAListingIsKeptOnlyWhileSeveral"}},
	},
	{
		guard: "the end of the sequence numbers",
		edit: edit{
			file: "coord/line.go",
			old:  `if self.Sequence < 0 || self.Sequence >= sequenceLimit {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestASequenceNearItsEndIsRefused"}},
	},
	{
		guard: "the other dialect is refused",
		edit: edit{
			file: "coord/line.go",
			old:  `if f.Sequence < self.Sequence {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestAContenderOfTheOtherDialect"}},
	},
	{
		guard: "names of no known shape are ignored",
		edit: edit{
			file: "coord/names.go",
			old:  `if len(body) > n && body[n] == '-' && isHex(body[:n], true) {`,
			new:  `if body[n] == '-' {`,
		},
		tests: []suite{{pkg: coord, run: "TestNamesOfNoKnownShape"}},
	},
	{
		guard: "a claim that was joined earlier looks again before it is granted",
		edit: edit{
			file: "coord/turn.go",
			old:  `switch err := cl.node.Look(ctx); {`,
			new:  `cl.node.Seen(); switch err := error(nil); {`,
		},
		tests: []suite{{pkg: coord, run: "TestAClaimThatDoesNotKnowOfItsNode"}},
	},
}
