package main

// leaving is how the rounds of a double barrier end.
var leaving = []mutant{
	{
		guard: "double barrier: no member is done before it says so",
		edit: edit{
			file: "coord/doublebarrier/leave.go",
			old:  `case err != nil || !hasFinished(data):`,
			new:  `case err != nil || !hasFinished(data) && false:`,
		},
		tests: []suite{{pkg: barrier, run: "TestNoMemberLeavesBeforeTheLastIsDone"}},
	},
	{
		guard: "double barrier: the next monitor takes over",
		edit: edit{
			file: "coord/doublebarrier/leave.go",
			old:  `if l.seen.hasChanged() {`,
			new:  `if true {`,
		},
		tests: []suite{{pkg: barrier, run: "TestTheNextMemberCloses"}},
	},
	{
		guard: "double barrier: a leaver that is slow to look sees that the round is over",
		edit: edit{
			file: "coord/doublebarrier/leave.go",
			old:  `if l.seen.hasChanged() {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: barrier, run: "TestALeaverThatIsSlow"}},
	},
	{
		guard: "double barrier: a leaver watches ready before it marks itself",
		edit: edit{
			file: "coord/doublebarrier/leave.go",
			old: `	if over, err := l.refresh(ctx); over || err != nil {
		return err
	}
	if err := m.mark(ctx); err != nil {
		return err
	}`,
			new: `	if err := m.mark(ctx); err != nil {
		return err
	}
	if over, err := l.refresh(ctx); over || err != nil {
		return err
	}`,
		},
		tests: []suite{{pkg: barrier, run: "TestALeaverWatchesReady"}},
	},
	{
		guard: "double barrier: a leaver looks for the end before it watches again",
		edit: edit{
			file: "coord/doublebarrier/leave.go",
			old:  `{l.barrier.ready.get, l.barrier.ready.watch}`,
			new:  `{l.barrier.ready.watch}`,
		},
		tests: []suite{{pkg: barrier, run: "TestALeaverThatLearns"}},
	},
	{
		guard: "double barrier: Leave ends with the membership",
		edit: edit{
			file: "coord/doublebarrier/leave.go",
			old:  `m.finish(m.hold.Context(ctx))`,
			new:  `m.finish(ctx)`,
		},
		tests: []suite{{pkg: barrier, run: "TestLeaveEnds"}},
	},
	{
		guard: "double barrier: a loss is told before the context's end that came later",
		edit: edit{
			file: "coord/doublebarrier/leave.go",
			old: `	if err := m.hold.Err(); err != nil {
		return err
	}
	err := m.finish`,
			new: `	err := m.finish`,
		},
		tests: []suite{{pkg: barrier, run: "TestLeaveReportsALoss"}},
	},
	{
		guard: "double barrier: a loss is told though the context ends with it",
		edit: edit{
			file: "coord/doublebarrier/leave.go",
			old:  `ctx.Err() != nil && errors.Is(err, ctx.Err()) {`,
			new:  `ctx.Err() != nil {`,
		},
		tests: []suite{{pkg: barrier, run: "TestLeaveReportsALossAlsoWhenItsContextEndsWithIt"}},
	},
	{
		guard: "double barrier: another number of members does not end a crashed round well",
		edit: edit{
			file: "coord/doublebarrier/state.go",
			old:  `		s = s.closing(missing)`,
			new:  `		s = s.closing(nil)`,
		},
		tests: []suite{{pkg: barrier, run: "TestAnotherNumber"}},
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
			old:  `case !hasFinished(data): // another`,
			new:  `case !hasFinished(data) && false: // another`,
		},
		tests: []suite{{pkg: barrier, run: "TestAMemberThatHasFinishedIsSeenTo"}},
	},
	{
		guard: "double barrier: a round is closed as it was read",
		edit: edit{
			file: "coord/doublebarrier/record.go",
			old:  `encode(to), from.stat.Version)`,
			new:  `encode(to), -1)`,
		},
		tests: []suite{{pkg: barrier, run: "TestARepeatedClose"}},
	},
	{
		guard: "double barrier: ready is the one that the member entered by",
		edit: edit{
			file: "coord/doublebarrier/leave.go",
			old:  `case err == nil && r.stat.Czxid != m.open.stat.Czxid:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: barrier, run: "TestInsideTheDeletionOfReady"}},
	},
}
