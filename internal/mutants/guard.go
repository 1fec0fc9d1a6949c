package main

// guards is how coorddemo's commands are stopped in time.
var guards = []mutant{
	{
		guard: "what was told to end was interrupted, whatever comes afterwards",
		edit: edit{
			decl: "keeper.obey",
			old: `		k.deadline = o.Deadline
	}
	if o.Signal`,
			new: `		k.deadline, k.cause, k.killAt = o.Deadline, ByItself, 0
	}
	if o.Signal`,
		},
		tests: []suite{{pkg: keeper, run: "TestACommandThatWasToldToEndIsInterrupted"}},
	},
	{
		guard: "what does not heed TERM is killed though the deadline moves",
		edit: edit{
			decl: "keeper.obey",
			old: `		k.deadline = o.Deadline
	}
	if o.Signal`,
			new: `		k.deadline, k.killAt = o.Deadline, 0
	}
	if o.Signal`,
		},
		tests: []suite{{pkg: keeper, run: "TestACommandThatDoesNotHeedTermIsKilled"}},
	},
	{
		guard: "orphans of a killed guard are killed before the owner is told",
		edit: edit{
			decl: "reaper",
			old:  `	for !s.over() {`,
			new:  `	for false {`,
		},
		tests: []suite{{pkg: keeper, run: "TestWhenTheGuardIsKilledAllIsDead"}},
	},
	{
		guard: "reports do not block",
		edit: edit{
			decl: "outbox.report",
			old: `	default:
		return false
	}`,
			new: `	}`,
		},
		tests: []suite{{pkg: keeper, run: "TestTheGuardKeepsTheDeadlineAlsoWhenItsReports"}},
	},
	{
		guard: "the command's arguments are bytes",
		edit: edit{
			decl: "keeper.start",
			old:  `argv[i] = string(word)`,
			new:  `argv[i] = string([]rune(string(word)))`,
		},
		tests: []suite{{pkg: keeper, run: "TestArgumentsAreBytes"}},
	},
	{
		guard: "what a frozen guard does not kill is killed above it",
		edit: edit{
			decl: "reaper",
			old: `		case <-abandoned:
			waiting = false`,
			new: `		case <-abandoned:
			return nil`,
		},
		tests: []suite{{pkg: keeper, run: "TestWhenTheGuardIsFrozenAbandonKillsAll"}},
	},
	{
		guard: "a frozen guard is left to kill by itself",
		edit: edit{
			decl: "reaper",
			old:  `waiting = status.Stopped()`,
			new:  `waiting = false`,
		},
		tests: []suite{{pkg: keeper, run: "TestAFrozenGuardKillsTheCommandWhenItGoesOn"}},
	},
	{
		guard: "a guard whose reaper was killed ends the command",
		edit: edit{
			decl: "keeper.act",
			old:  `case os.Getppid() != k.parent:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: keeper, run: "TestWhenTheReaperIsKilledTheGuardEndsTheCommand"}},
	},
	{
		guard: "an owner without a report of the end is not sure of it",
		edit: edit{
			decl: "Process.read",
			old:  `Cause: ByKill, Unsure: true}`,
			new:  `Cause: ByKill}`,
		},
		tests: []suite{{pkg: keeper, run: "TestWhenGuardAndReaperAreKilledTheOwnerIsNotSure"}},
	},
	{
		guard: "while something of a command may be running nothing is released",
		edit: edit{
			decl: "run.lost",
			old:  `r.left = true`,
			new:  `r.left = false`,
		},
		tests: []suite{{pkg: runs, run: "TestWhenAllThatGuardsIsKilledNothingIsReleased"}},
	},
	{
		guard: "a note that is not read ends no process",
		edit: edit{
			decl: "forward",
			old: `	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
`,
		},
		tests: []suite{{pkg: runs, run: "TestANoteThatIsNotReadDoesNotEndTheProcess"}},
	},
	{
		guard: "no process waits for the reader of a note",
		edit: edit{
			decl: "Notes.add",
			old: `	defer n.mu.Unlock()
	if len(n.pending)`,
			new: `	defer n.mu.Unlock()
	if len(p) > 0 {
		_, _ = n.File.Write(p)
		return
	}
	if len(n.pending)`,
		},
		tests: []suite{{pkg: runs, run: "TestNothingWaitsForANoteThatIsStuck"}},
	},
	{
		guard: "the children of a process without its first thread are reached",
		edit: edit{
			decl: "processOf",
			old:  `if len(fields) < 2 {`,
			new:  `if len(fields) < 2 || fields[0][0] == 'Z' {`,
		},
		tests: []suite{{pkg: keeper, run: "TestTheChildrenOfAProcessWithoutItsFirstThread"}},
	},
}
