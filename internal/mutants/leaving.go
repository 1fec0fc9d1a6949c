package main

// leaving is how the rounds of a double barrier end.
var leaving = []mutant{
	{
		guard: "double barrier: nobody is done before it says so",
		edit: edit{
			file: "coord/doublebarrier/leave.go",
			old:  `case other.err != nil || !other.finished:`,
			new:  `case other.err != nil || !other.finished && false:`,
		},
		tests: []suite{{pkg: barrier, run: "TestNobodyLeavesBeforeTheLastIsDone"}},
	},
	{
		guard: "double barrier: the next monitor takes over",
		edit: edit{
			file: "coord/doublebarrier/leave.go",
			old: `		case r.hasChanged():
			return r.changed, nil`,
			new: `		default:
			return r.changed, nil`,
		},
		tests: []suite{{pkg: barrier, run: "TestTheNextMemberCloses"}},
	},
	{
		guard: "double barrier: a leaver that is slow to look sees that the round is over",
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
		tests: []suite{{pkg: barrier, run: "TestAMemberThatDiesBeforeItHasFinished"}},
	},
	{
		guard: "double barrier: a member that has finished keeps its mark",
		edit: edit{
			file: "coord/doublebarrier/leave.go",
			old:  `case err == nil && isMarked(data):`,
			new:  `case err == nil && (isMarked(data) || true):`,
		},
		tests: []suite{{pkg: barrier, run: "TestAMemberThatHasFinishedIsSeenTo"}},
	},
	{
		guard: "double barrier: a round is closed as it was read",
		edit: edit{
			file: "coord/doublebarrier/leave.go",
			old:  `encode(r.closing(l.missing)), r.stat.Version)`,
			new:  `encode(r.closing(l.missing)), -1)`,
		},
		tests: []suite{{pkg: barrier, run: "TestARepeatedClose"}},
	},
	{
		guard: "double barrier: ready is the one that the member entered by",
		edit: edit{
			file: "coord/doublebarrier/leave.go",
			old:  `case err == nil && r.stat.Czxid != m.made:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: barrier, run: "TestInsideTheDeletionOfReady"}},
	},
}
