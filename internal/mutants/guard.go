package main

// guards is how coorddemo's commands are stopped in time.
var guards = []mutant{
	{
		guard: "what was told to end was interrupted, whatever comes afterwards",
		edit: edit{
			file: "cmd/coorddemo/internal/guard/keeper_unix.go",
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
			file: "cmd/coorddemo/internal/guard/keeper_unix.go",
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
			file: "cmd/coorddemo/internal/guard/reaper_linux.go",
			old:  `	for !s.over() {`,
			new:  `	for false {`,
		},
		tests: []suite{{pkg: keeper, run: "TestWhenTheGuardIsKilledAllIsDead"}},
	},
	{
		guard: "reports do not block",
		edit: edit{
			file: "cmd/coorddemo/internal/guard/outbox_unix.go",
			old: `	default:
		return false
	}`,
			new: `	}`,
		},
		tests: []suite{{pkg: keeper, run: "TestTheGuardKeepsTheDeadlineAlsoWhenNobodyReads"}},
	},
	{
		guard: "the command's arguments are bytes",
		edit: edit{
			file: "cmd/coorddemo/internal/guard/keeper_unix.go",
			old:  `argv[i] = string(word)`,
			new:  `argv[i] = string([]rune(string(word)))`,
		},
		tests: []suite{{pkg: keeper, run: "TestArgumentsAreBytes"}},
	},
}
