package main

// waits is the wait for what a look reads.
var waits = []mutant{
	{
		guard: "a wait is woken by what its look has read",
		edit: edit{
			decl: "View.wakers",
			old:  `wake = append(wake, r.watch.Done())`,
			new:  `wake = append(wake, r.watch.Done())[:len(wake)]`,
		},
		tests: []suite{{pkg: coord, run: "TestALookIsCalledAgainWhenWhatItRead"}},
	},
	{
		guard: "a node that is missing is watched for",
		edit: edit{
			decl: "tap.Fired",
			old:  `s.fire(armed{path, Absence}, fired)`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestALookIsCalledAgainWhenWhatItRead"}},
	},
	{
		guard: "a deletion that a watch has told of is one answer",
		edit: edit{
			decl: "View.watch",
			old:  `	delete(v.last, key)`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestANodeThatWasDeletedAndMadeAnew"}},
	},
	{
		guard: "what a look has only peeked at wakes it",
		edit: edit{
			decl: "View.Peek",
			old:  `v.read = append(v.read, reading{watched{session.Data, path}, w})`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestAPeekIsWatched"}},
	},
	{
		guard: "what is read ahead in a fresh wait is up to date",
		edit: edit{
			decl: "View.Ahead",
			old:  `err = v.client.catchUp(v.ctx, s)`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestAFreshWait"}},
	},
	{
		guard: "a fresh look does not peek at a server's past",
		edit: edit{
			decl: "View.Peek",
			old:  `if s == nil || checkPath(path) != nil || !v.client.hasCaughtUp(s) {`,
			new:  `if s == nil || checkPath(path) != nil {`,
		},
		tests: []suite{{pkg: coord, run: "TestAFreshLook"}},
	},
	{
		guard: "what a fresh wait reads is up to date",
		edit: edit{
			decl: "read",
			old:  `if err = c.catchUp(ctx, s); err == nil {`,
			new:  `if err = ctx.Err(); err == nil {`,
		},
		tests: []suite{{pkg: gate, run: "TestAWaiterAtAServerThatLags"}},
	},
	{
		guard: "a wait that reads no node ends with its client",
		edit: edit{
			decl: "View.wakers",
			old:  `wake = append(append(wake, v.until...), v.ctx.Done(), v.client.closed)`,
			new:  `wake = append(append(wake, v.until...), v.ctx.Done())`,
		},
		tests: []suite{{pkg: coord, run: "TestAWaitEndsWithItsContextItsClient"}},
	},
	{
		guard: "a recipe of one's own: the rule of the pair",
		edit: edit{
			decl: "firstTwo",
			old:  `if n < 2 {`,
			new:  `if n < 3 {`,
		},
		tests: []suite{{pkg: coord, run: "TestAPair"}},
	},
	{
		guard: "a recipe of one's own: the pair waits for either of the two before it",
		edit: edit{
			decl: "firstTwo",
			old:  `return []int{n - 1, n - 2}, false`,
			new:  `return []int{n - 1}, false`,
		},
		tests: []suite{{pkg: coord, run: "TestAPair"}},
	},
	{
		guard: "a recipe of one's own: the look of the latch",
		edit: edit{
			decl: "Latch.Wait",
			old:  `return len(parties) >= l.n, err`,
			new:  `return len(parties) >= l.n-1, err`,
		},
		tests: []suite{{pkg: coord, run: "TestALatch"}},
	},
	{
		guard: "a recipe of one's own: the latch watches what it reads",
		edit: edit{
			decl: "Latch.Wait",
			old:  `parties, err := v.Dir(l.path)`,
			new:  `parties, err := l.client.Children(ctx, l.path)`,
		},
		tests: []suite{{pkg: coord, run: "TestALatch"}},
	},
	{
		guard: "a recipe of one's own: the rule of the mutex with a pause",
		edit: edit{
			decl: "Pausable.Acquire",
			old:  `p.client.Acquire(ctx, p.spec, coord.First)`,
			new:  `p.client.Acquire(ctx, p.spec, func([]coord.Contender) ([]int, bool) { return nil, true })`,
		},
		tests: []suite{{pkg: coord, run: "TestAPausable"}},
	},
	{
		guard: "a recipe of one's own: the look of the mutex with a pause",
		edit: edit{
			decl: "Pausable.Acquire",
			old:  `return false, cmp.Or(err, h.Err())`,
			new:  `return true, cmp.Or(err, h.Err())`,
		},
		tests: []suite{{pkg: coord, run: "TestAPausable"}},
	},
	{
		guard: "a recipe of one's own: a hold that is lost in the pause is in view",
		edit: edit{
			decl: "Pausable.Acquire",
			old:  `v.Until(h.Done())`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestAPausableThatIsLost"}},
	},
}
