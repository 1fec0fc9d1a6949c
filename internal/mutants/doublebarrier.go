package main

// doubleBarrier is the double barrier with its rounds.
var doubleBarrier = []mutant{
	{
		guard: "double barrier: the roster is checked when the round begins",
		edit: edit{
			file: "coord/doublebarrier/enter.go",
			old:  `if name != e.self.Name {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: barrier, run: "TestARoundBeginsOnlyWhileAllItsMembersAreThere"}},
	},
	{
		guard: "double barrier: ready changes by its version",
		edit: edit{
			file: "coord/doublebarrier/enter.go",
			old:  `ops = append(ops, coord.SetOp(e.ready, encode(next), r.stat.Version))`,
			new:  `ops = append(ops, coord.SetOp(e.ready, encode(next), -1))`,
		},
		tests: []suite{{pkg: barrier, run: "TestEverySchedule|TestNobodyHangs|TestNoSingleLoss"}},
	},
	{
		guard: "double barrier: only members of the round get in",
		edit: edit{
			file: "coord/doublebarrier/enter.go",
			old:  `r.Open && index >= 0 {`,
			new:  `r.Open {`,
		},
		tests: []suite{{pkg: barrier, run: "TestALateComer|TestOneTooMany|TestWhoWaits"}},
	},
	{
		guard: "double barrier: outcomes are kept for the slow",
		edit: edit{
			file: "coord/doublebarrier/state.go",
			old:  `return !r.alive(line) })`,
			new:  `return true })`,
		},
		tests: []suite{{pkg: barrier, run: "TestTheOutcomeIsKept"}},
	},
	{
		guard: "double barrier: whoever may complete a round looks",
		edit: edit{
			file: "coord/doublebarrier/enter.go",
			old:  `>= e.size-1 }`,
			new:  `== e.size-1 }`,
		},
		tests: []suite{{pkg: barrier, run: "TestAMemberThatGivesUp|TestACrashedRound"}},
	},
	{
		guard: "double barrier: a crashed round does not block those who wait",
		edit: edit{
			file: "coord/doublebarrier/enter.go",
			old:  `if r.Open && r.alive(line) {`,
			new:  `if r.Open {`,
		},
		tests: []suite{{pkg: barrier, run: "TestACrashedRound"}},
	},
	{
		guard: "double barrier: who waits for a crash hears of it",
		edit: edit{
			file: "coord/doublebarrier/enter.go",
			old: `	return wake, true, err
}`,
			new: `	return nil, true, err
}`,
		},
		tests: []suite{{pkg: barrier, run: "TestThoseWhoWaitGoOn"}},
	},
	{
		guard: "double barrier: an opening that failed is tried again",
		edit: edit{
			file: "coord/doublebarrier/enter.go",
			old:  `return false, nil // one has gone`,
			new:  `return true, nil // one has gone`,
		},
		tests: []suite{{pkg: barrier, run: "TestWhenOneOfTooMany"}},
	},
	{
		guard: "double barrier: a server that lags makes nobody late",
		edit: edit{
			file: "coord/doublebarrier/enter.go",
			old:  `if !flushed {`,
			new:  `if !flushed && false {`,
		},
		tests: []suite{{pkg: barrier, run: "TestANewcomer"}},
	},
	{
		guard: "double barrier: nobody is done before it says so",
		edit: edit{
			file: "coord/doublebarrier/leave.go",
			old:  `case other.err != nil || !other.finished:`,
			new:  `case other.err != nil || !other.finished && false:`,
		},
		tests: []suite{{pkg: barrier, run: "TestMembersEnter|TestWhenTheMonitor"}},
	},
	{
		guard: "double barrier: the next monitor takes over",
		edit: edit{
			file: "coord/doublebarrier/leave.go",
			old:  `for ; l.before >= 0; l.before-- {`,
			new:  `for l.before >= 0 {`,
		},
		tests: []suite{{pkg: barrier, run: "TestWhenTheMonitor"}},
	},
	{
		guard: "double barrier: who left after the end is not missing",
		edit: edit{
			file: "coord/doublebarrier/leave.go",
			old:  `case r.hasChanged():`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: barrier, run: "TestALeaverThatIsSlow"}},
	},
	{
		guard: "double barrier: a member that died unfinished is missing",
		edit: edit{
			file: "coord/doublebarrier/leave.go",
			old:  `			l.missing = append(l.missing, l.next)`,
			new:  ``,
		},
		tests: []suite{{pkg: barrier, run: "TestAMemberThatDiesInside|TestAMemberThatAbandons"}},
	},
}
