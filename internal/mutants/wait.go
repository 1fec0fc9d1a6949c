package main

// waits is the wait for what a look reads.
var waits = []mutant{
	{
		guard: "a wait is woken by what its look has read",
		edit: edit{
			file: "coord/wait.go",
			old:  `wake = append(wake, w.Done())`,
			new:  `wake = append(wake, w.Done())[:len(wake)]`,
		},
		tests: []suite{{pkg: coord, run: "TestALookIsCalledAgainWhenWhatItRead"}},
	},
	{
		guard: "a node that is missing is watched for",
		edit: edit{
			file: "coord/internal/session/watch.go",
			old:  `s.fire(armed{e.Path, Absence}, fired)`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestALookIsCalledAgainWhenWhatItRead"}},
	},
	{
		guard: "a deletion that a watch has told of is one answer",
		edit: edit{
			file: "coord/wait.go",
			old:  `	delete(v.last, key)`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestANodeThatWasDeletedAndMadeAnew"}},
	},
	{
		guard: "what is read ahead in a fresh wait is up to date",
		edit: edit{
			file: "coord/wait.go",
			old:  `if v.fresh != nil && v.fresh.Read(`,
			new:  `if v.fresh != nil && false && v.fresh.Read(`,
		},
		tests: []suite{{pkg: coord, run: "TestAFreshWait"}},
	},
	{
		guard: "what a fresh wait reads is up to date",
		edit: edit{
			file: "coord/wait.go",
			old:  `err = v.fresh.Read(v.ctx, ask)`,
			new:  `err = ask(v.ctx)`,
		},
		tests: []suite{{pkg: gate, run: "TestAWaiterAtAServerThatLags"}},
	},
	{
		guard: "a wait that reads no node ends with its client",
		edit: edit{
			file: "coord/wait.go",
			old:  `wake := append(v.until, due.Done(), v.client.closed)`,
			new:  `wake := append(v.until, due.Done())`,
		},
		tests: []suite{{pkg: coord, run: "TestAWaitEndsWithItsContextItsClient"}},
	},
}
