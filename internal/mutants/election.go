package main

// election is the election, with the barrier and the reads that both make.
var election = []mutant{
	{
		guard: "reads that do not go back in time",
		edit: edit{
			file: "coord/retry.go",
			old:  `if err := f.client.Flush(ctx); err != nil {`,
			new:  `if err := ctx.Err(); err != nil {`,
		},
		tests: []suite{{pkg: gate, run: "TestAWaiterAtAServerThatLags"}, {pkg: elect, run: "TestALeaderOfThePast"}},
	},
	{
		guard: "barrier: a barrier that was closed again had been opened",
		edit: edit{
			file: "coord/barrier/barrier.go",
			old:  `case closed != 0 && closed != stat.Czxid:`,
			new:  `case closed != 0 && closed != stat.Czxid && false:`,
		},
		tests: []suite{{pkg: gate, run: "TestAWaiterThatWasAway"}},
	},
	{
		guard: "election: a request to step down outlives a proclamation",
		edit: edit{
			file: "coord/election/term.go",
			old:  `if coord.IsRevocation(data) {`,
			new:  `if coord.IsRevocation(data) && false {`,
		},
		tests: []suite{{pkg: elect, run: "TestARequestToStepDownIsHeededBefore"}},
	},
	{
		guard: "election: what a lost leader says does not end Run",
		edit: edit{
			file: "coord/election/run.go",
			old:  `if lost {`,
			new:  `if lost && false {`,
		},
		tests: []suite{{pkg: elect, run: "TestRunCampaignsAgain"}},
	},
	{
		guard: "election: short terms follow one another slowly",
		edit: edit{
			file: "coord/election/run.go",
			old:  `pause = min(2*pause, limit)`,
			new:  `pause = shortestPause`,
		},
		tests: []suite{{pkg: elect, run: "TestTermsThatEndAtOnce"}},
	},
	{
		guard: "election: who is gone is not the first any more",
		edit: edit{
			file: "coord/election/leader.go",
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
			file: "coord/retry.go",
			old:  ` || errors.Is(err, ErrLost)`,
			new:  ``,
		},
		tests: []suite{{pkg: elect, run: "TestAProclamationAfterTheSessionsEnd"}},
	},
}
