package main

// doubleBarrier is how the rounds of a double barrier begin.
var doubleBarrier = []mutant{
	off("double barrier: the roster is checked when the round begins", in(barrier, "TestARoundBeginsOnlyWhileAllItsMembersAreThere"),
		"Member.begin", `if name != m.self.Name {`, `if false {`),
	off("double barrier: ready changes by its version", in(barrier, "TestOfSeveralThatChangeTheRecord"),
		"record.write", `encode(to), from.stat.Version)`, `encode(to), -1)`),
	off("double barrier: only members of the round get in",
		in(barrier, "TestALateComer|TestOneMemberTooManyIsToldSo|TestAMemberThatWaitsForTheNextRoundGetsAPlaceInTheOrderOfArrival"),
		"Member.look", `r.Open && index >= 0 {`, `r.Open {`),
	off("double barrier: outcomes are kept for the slow", in(barrier, "TestTheOutcomeIsKept"),
		"state.opening", `return !r.alive(line) })`, `return true })`),
	off("double barrier: a member that may complete a round looks", in(barrier, "TestAPlaceThatWasGivenUp"),
		"Member.look", `< r.Size-1:`, `!= r.Size-1:`),
	off("double barrier: a crashed round does not block those that wait", in(barrier, "TestARoundWhoseMembersHaveAllCrashed"),
		"Member.look", `case !r.Open || !r.alive(line):`, `case !r.Open:`),
	off("double barrier: a list that is older than the round does not tell whether that has crashed",
		in(barrier, "TestAMemberIsNotLateForARoundThatCrashed"),
		"Member.look", `if line == nil || r.Open {`, `if line == nil {`),
	off("double barrier: a member that waits for a crash hears of it", in(barrier, "TestThoseWhoWaitHear"),
		"Member.queue", `_, _, err := v.Children(`, `_, err := m.barrier.client.Children(context.Background(), `),
	off("double barrier: an opening that failed is tried again", in(barrier, "TestWhenOneOfTooMany"),
		"Member.look", `v.Again() // a node of the list`, `// a node of the list`),
	off("double barrier: a server that lags makes no member late", in(barrier, "TestANewcomer"),
		"Barrier.admit", `b.client.Fresh() //`, `b.client //`),
	off("double barrier: the number of the round", in(barrier, "TestTheOutcomeIsKept"),
		"state.outcome", `if s.Number == number && !s.Open {`, `if !s.Open {`),
	off("double barrier: a member that comes again is not counted twice", in(barrier, "TestAMemberThatComesAgain"),
		"Barrier.enter", `return b.client.Delete(ctx, hold.Node(), -1)`, `return nil`),
	off("double barrier: programs that disagree about the size are refused", in(barrier, "TestAMemberIsRefusedWhenTheSize"),
		"Member.look", `case r.Size != b.size:`, `case false:`),
	off("double barrier: a newcomer looks again before it refuses", in(barrier, "TestThoseWhoAgreeOnAnotherNumber"),
		"Barrier.admit", `	return b.client.Wait(ctx, func(v *coord.View) (admitted bool, err error) {
		r, err := b.ready.watchOrMake(v, b.size)`,
		`	var r snapshot
	return b.client.Wait(ctx, func(v *coord.View) (admitted bool, err error) {
		if !listed {
			r, err = b.ready.watchOrMake(v, b.size)
		}`),
}

// gates is what keeps a barrier shut.
var gates = []mutant{
	off("barrier: a node that the servers may delete is none", in(gate, "TestTheParentOfAnotherBarrier"),
		"other", `case stat.Cversion != 0:`, `case false:`),
	off("barrier: a node with children is none", in(gate, "TestWhatIsNoBarrier"),
		"other", `case stat.Children > 0:`, `case false:`),
	off("barrier: a node of a session is none", in(gate, "TestWhatIsNoBarrier"),
		"other", `case stat.Owner != 0:`, `case false:`),
	off("barrier: a node that has gone meanwhile is made again", in(gate, "TestANodeThatIsDeletedWhile"),
		"Barrier.Set", `continue // removed since`, `return nil`),
}
