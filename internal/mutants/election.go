package main

// election is the election, with the barrier and the reads that both make.
var election = []mutant{
	{
		guard: "reads that do not go back in time",
		edit: edit{
			decl: "Client.catchUp",
			old:  `err := s.Flush(ctx)`,
			new:  `err := ctx.Err()`,
		},
		tests: []suite{{pkg: gate, run: "TestAWaiterAtAServerThatLags"}, {pkg: elect, run: "TestALeaderOfThePast"}},
	},
	{
		guard: "barrier: a barrier that was closed again had been opened",
		edit: edit{
			decl: "Barrier.Wait",
			old:  ` || err == nil && closed != 0 && closed != stat.Czxid {`,
			new:  ` || err == nil && closed != 0 && closed != stat.Czxid && false {`,
		},
		tests: []suite{{pkg: gate, run: "TestAWaiterThatWasAway"}},
	},
	{
		guard: "election: a request to step down outlives a proclamation",
		edit: edit{
			decl: "Term.heed",
			old:  `if inspect.IsRevocation(data) {`,
			new:  `if inspect.IsRevocation(data) && false {`,
		},
		tests: []suite{{pkg: elect, run: "TestARequestToStepDownIsHeededBefore"}},
	},
	{
		guard: "election: what a lost leader says does not end Run",
		edit: edit{
			decl: "serve",
			old:  `if lost {`,
			new:  `if lost && false {`,
		},
		tests: []suite{{pkg: elect, run: "TestRunCampaignsAgain"}},
	},
	{
		guard: "election: nothing is written into a candidate's node",
		edit: edit{
			decl: "Notice",
			old:  `return node[:strings.LastIndex(node, marker)+len(marker)]`,
			new:  `return node + marker[:0]`,
		},
		tests: []suite{{pkg: elect, run: "TestNothingIsWrittenInto"}, {pkg: coord, run: "TestOnlyALeaderHasANotice"}},
	},
	{
		guard: "a part is made only while its hold's node exists",
		edit: edit{
			decl: "shape.create",
			old: `if s.part != nil {
		// Ends with the session.`,
			new: `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestAPartIsNotMade"}},
	},
	{
		guard: "a part goes with its hold, also when that is broken",
		edit: edit{
			decl: "removal.end",
			old:  `r.over(cmp.Or(err, removeParts(r.claim.partsLeft())))`,
			new:  `r.over(cmp.Or(err))`,
		},
		tests: []suite{{pkg: coord, run: "TestAPartGoes"}},
	},
	{
		guard: "a part of a hold that a transaction released goes, too",
		edit: edit{
			decl: "claim.releasedBy",
			old:  `if len(parts) > 0 {`,
			new:  `if len(parts) > 0 && false {`,
		},
		tests: []suite{{pkg: coord, run: "TestAPartGoes"}},
	},
	{
		guard: "election: a candidate that is gone is not the first any more",
		edit: edit{
			decl: "Election.first",
			old: `		if errors.Is(err, coord.ErrNoNode) {
			continue
		}`,
			new: ``,
		},
		tests: []suite{{pkg: elect, run: "TestAFirstThatGoes"}},
	},
	{
		guard: "Retry: a lost hold does not come back",
		edit: edit{
			decl: "Client.Retry",
			old:  ` || errors.Is(err, ErrLost)`,
			new:  ``,
		},
		tests: []suite{{pkg: elect, run: "TestAProclamationAfterTheSessionsEnd"}},
	},
	{
		guard: "election: Run is not refused when it campaigns again",
		edit: edit{
			decl: "Election.Run",
			old:  `campaigning = coord.Patient(ctx)`,
			new:  ``,
		},
		tests: []suite{{pkg: elect, run: "TestF56"}},
	},
}
