package main

// doubleBarrier is how the rounds of a double barrier begin.
var doubleBarrier = []mutant{
	{
		guard: "double barrier: the roster is checked when the round begins",
		edit: edit{
			decl: "Member.begin",
			old:  `if name != m.self.Name {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: barrier, run: "TestARoundBeginsOnlyWhileAllItsMembersAreThere"}},
	},
	{
		guard: "double barrier: ready changes by its version",
		edit: edit{
			decl: "record.write",
			old:  `encode(to), from.stat.Version)`,
			new:  `encode(to), -1)`,
		},
		tests: []suite{{pkg: barrier, run: "TestOfSeveralThatChangeTheRecord"}},
	},
	{
		guard: "double barrier: only members of the round get in",
		edit: edit{
			decl: "Member.look",
			old:  `r.Open && index >= 0 {`,
			new:  `r.Open {`,
		},
		tests: []suite{{pkg: barrier, run: "TestALateComer|TestOneMemberTooManyIsToldSo|TestAMemberThatWaitsForTheNextRoundGetsAPlaceInTheOrderOfArrival"}},
	},
	{
		guard: "double barrier: outcomes are kept for the slow",
		edit: edit{
			decl: "state.opening",
			old:  `return !r.alive(line) })`,
			new:  `return true })`,
		},
		tests: []suite{{pkg: barrier, run: "TestTheOutcomeIsKept"}},
	},
	{
		guard: "double barrier: a member that may complete a round looks",
		edit: edit{
			decl: "Member.look",
			old:  `< r.Size-1:`,
			new:  `!= r.Size-1:`,
		},
		tests: []suite{{pkg: barrier, run: "TestAPlaceThatWasGivenUp"}},
	},
	{
		guard: "double barrier: a crashed round does not block those that wait",
		edit: edit{
			decl: "Member.look",
			old:  `case !r.Open || !r.alive(line):`,
			new:  `case !r.Open:`,
		},
		tests: []suite{{pkg: barrier, run: "TestARoundWhoseMembersHaveAllCrashed"}},
	},
	{
		guard: "double barrier: a list that is older than the round does not tell whether that has crashed",
		edit: edit{
			decl: "Member.look",
			old:  `if line == nil || r.Open {`,
			new:  `if line == nil {`,
		},
		tests: []suite{{pkg: barrier, run: "TestAMemberIsNotLateForARoundThatCrashed"}},
	},
	{
		guard: "double barrier: a member that waits for a crash hears of it",
		edit: edit{
			decl: "Member.queue",
			old:  `_, _, err := v.Children(`,
			new:  `_, err := m.barrier.client.Children(context.Background(), `,
		},
		tests: []suite{{pkg: barrier, run: "TestThoseWhoWaitHear"}},
	},
	{
		guard: "double barrier: an opening that failed is tried again",
		edit: edit{
			decl: "Member.look",
			old:  `v.At(time.Now()) // a node of the list`,
			new:  `// a node of the list`,
		},
		tests: []suite{{pkg: barrier, run: "TestWhenOneOfTooMany"}},
	},
	{
		guard: "double barrier: a server that lags makes no member late",
		edit: edit{
			decl: "Barrier.admit",
			old:  `err = b.client.Flush(ctx) //`,
			new:  `//`,
		},
		tests: []suite{{pkg: barrier, run: "TestANewcomer"}},
	},
	{
		guard: "double barrier: the number of the round",
		edit: edit{
			decl: "state.outcome",
			old:  `if s.Number == number && !s.Open {`,
			new:  `if !s.Open {`,
		},
		tests: []suite{{pkg: barrier, run: "TestTheOutcomeIsKept"}},
	},
	{
		guard: "double barrier: a member that comes again is not counted twice",
		edit: edit{
			decl: "Barrier.enter",
			old:  `return b.client.Delete(ctx, hold.Node(), -1)`,
			new:  `return nil`,
		},
		tests: []suite{{pkg: barrier, run: "TestAMemberThatComesAgain"}},
	},
	{
		guard: "double barrier: programs that disagree about the size are refused",
		edit: edit{
			decl: "Member.look",
			old:  `case r.Size != b.size:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: barrier, run: "TestAMemberIsRefusedWhenTheSize"}},
	},
	{
		guard: "double barrier: a newcomer looks again before it refuses",
		edit: edit{
			decl: "Barrier.admit",
			old: `	return b.client.Wait(ctx, func(v *coord.View) (admitted bool, err error) {
		r, err := b.ready.watchOrMake(v, b.size)`,
			new: `	var r snapshot
	return b.client.Wait(ctx, func(v *coord.View) (admitted bool, err error) {
		if !listed {
			r, err = b.ready.watchOrMake(v, b.size)
		}`,
		},
		tests: []suite{{pkg: barrier, run: "TestThoseWhoAgreeOnAnotherNumber"}},
	},
}
