package main

// leaving is how the rounds of a double barrier end.
var leaving = []mutant{
	{
		guard: "double barrier: no member is done before it says so",
		edit: edit{
			decl: "leaver.awaitOthers",
			old:  `case err != nil || !hasFinished(data):`,
			new:  `case err != nil || !hasFinished(data) && false:`,
		},
		tests: []suite{{pkg: barrier, run: "TestNoMemberLeavesBeforeTheLastIsDone"}},
	},
	{
		guard: "double barrier: the next monitor takes over",
		edit: edit{
			decl: "leaver.awaitBefore",
			old:  `_, _, err := v.Children(l.node(l.before))`,
			new:  `_, err := l.barrier.client.Children(context.Background(), l.node(l.before))`,
		},
		tests: []suite{{pkg: barrier, run: "TestTheNextMemberCloses"}},
	},
	{
		guard: "double barrier: a leaver that did not hear of the end at once looks around",
		edit: edit{
			decl: "leaver.look",
			old:  `v.At(l.hurry)`,
			new:  ``,
		},
		tests: []suite{{pkg: barrier, run: "TestTheNextMemberCloses"}},
	},
	{
		guard: "double barrier: a leaver that is slow to look sees that the round is over",
		edit: edit{
			decl: "leaver.awaitBefore",
			old: `		v.At(time.Now())
		return nil`,
			new: `		if l.before >= 0 {
			return l.awaitBefore(v)
		}
		return nil`,
		},
		tests: []suite{{pkg: barrier, run: "TestALeaverThatIsSlow"}},
	},
	{
		guard: "double barrier: a leaver watches ready before it marks itself",
		edit: edit{
			decl: "leaver.look",
			old: `	if over, err := l.refresh(ctx, v); over || err != nil {
		return over, err
	}
	if l.hurry.IsZero() {
		if err := l.mark(ctx); err != nil {
			return false, err
		}
		l.hurry = time.Now().Add(hurry)
	}`,
			new: `	if l.hurry.IsZero() {
		if err := l.mark(ctx); err != nil {
			return false, err
		}
		l.hurry = time.Now().Add(hurry)
	}
	if over, err := l.refresh(ctx, v); over || err != nil {
		return over, err
	}`,
		},
		tests: []suite{{pkg: barrier, run: "TestALeaverWatchesReady"}},
	},
	{
		guard: "double barrier: a leaver looks for the end before it watches again",
		edit: edit{
			decl: "leaver.refresh",
			old:  `if over, err := l.ended(ready.get(ctx)); over || err != nil {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: barrier, run: "TestALeaverThatLearns"}},
	},
	{
		guard: "double barrier: Leave ends with the membership",
		edit: edit{
			decl: "Member.leave",
			old:  `inside := m.hold.Context(ctx)`,
			new:  `inside := ctx`,
		},
		tests: []suite{{pkg: barrier, run: "TestLeaveEnds"}},
	},
	{
		guard: "double barrier: another number of members does not end a crashed round well",
		edit: edit{
			decl: "state.resized",
			old:  `		s = s.closing(missing)`,
			new:  `		s = s.closing(nil)`,
		},
		tests: []suite{{pkg: barrier, run: "TestAnotherNumber"}},
	},
	{
		guard: "double barrier: a member that died unfinished is missing",
		edit: edit{
			decl: "leaver.awaitOthers",
			old:  `			l.missing = append(l.missing, l.next)`,
			new:  ``,
		},
		tests: []suite{{pkg: barrier, run: "TestAMemberThatDiesBeforeItHasFinished"}},
	},
	{
		guard: "double barrier: a member that has finished keeps its mark",
		edit: edit{
			decl: "leaver.look",
			old:  `case !hasFinished(data): // another`,
			new:  `case !hasFinished(data) && false: // another`,
		},
		tests: []suite{{pkg: barrier, run: "TestAMemberThatHasFinishedIsSeenTo"}},
	},
	{
		guard: "double barrier: ready is the one that the member entered by",
		edit: edit{
			decl: "leaver.ended",
			old:  `case r.stat.Czxid != l.open.stat.Czxid:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: barrier, run: "TestInsideTheDeletionOfReady"}},
	},
}
