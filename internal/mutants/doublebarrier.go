package main

// doubleBarrier is how the rounds of a double barrier begin.
var doubleBarrier = []mutant{
	off("double barrier: the roster is checked when the round begins",
		in(barrier, "TestARoundBeginsOnlyWhileAllItsMembersAreThere"),
		"Member.begin", `if name != m.self.Name {`, `if false {`),
	off("double barrier: the record itself has a number", in(barrier, "TestOneMemberAloneTries"),
		"first", `round{Next: 1}`, `round{}`),
	off("double barrier: ready changes by its version", in(barrier, "TestOfSeveralThatChangeTheRecord"),
		"record.write", `encode(to), from.stat.Version)`, `encode(to), -1)`),
	off("double barrier: only members of the round get in",
		in(barrier,
			"TestALateComer|TestOneMemberTooManyIsToldSo|TestAMemberThatWaitsForTheNextRoundGetsAPlaceInTheOrderOfArrival"),
		"Member.look", `r.Open && index >= 0 {`, `r.Open {`),
	off("double barrier: outcomes are kept for the slow", in(barrier, "TestTheOutcomeIsKept"),
		"state.opening", `return !r.alive(line) })`, `return true })`),
	off("double barrier: a member that may complete a round looks", in(barrier, "TestAllNDoNotWait"),
		"Member.calls", `before >= r.Size-1`, `before == r.Size-1`),
	off("double barrier: a crashed round does not block those that wait", in(barrier, "TestACrashedRoundLetsNoMember"),
		"Member.look", `case !r.Open || !r.alive(there.line):`, `case !r.Open:`),
	off("double barrier: a list that is older than the round does not tell whether that has crashed",
		in(barrier, "TestAMemberIsNotLateForARoundThatCrashed"),
		"Member.look", `if there == nil || r.Open {`, `if there == nil {`),
	off("double barrier: a member that waits for a crash hears of it", in(barrier, "TestThoseWhoWaitGoOn"),
		"Member.queue", `_, _, err := v.Children(`, `_, err := m.barrier.client.Children(context.Background(), `),
	off("double barrier: an opening that failed is tried again", in(barrier, "TestWhenOneOfTooMany"),
		"Member.look", `v.RecheckNow() // a node of the list`, `// a node of the list`),
	off("double barrier: a server that lags makes no member late", in(barrier, "TestANewcomer"),
		"Barrier.admit", `b.client.Synced() //`, `b.client //`),
	off("double barrier: a round begins with the least number only after the last call",
		in(barrier, "TestARoundBeginsWithTheLeast"),
		"Member.called", `&& !time.Now().Before(m.lastCall)`, ``),
	off("double barrier: a member that is too late for n members calls, too",
		in(barrier, "TestTheLastCallOfAMemberThatDies"),
		"Member.calls", `return m.callLast(v) || before >= r.Size-1`, `return before >= r.Size-1 || m.called()`),
	off("double barrier: after a crash the least number is enough, too", in(barrier, "TestAfterARoundThatCrashed"),
		"Member.look", `m.callLast(v) // only`, `// only`),
	off("double barrier: each round has a last call of its own", in(barrier, "TestALastCallIsForOneRound"),
		"Member.look", `m.callsAfter, m.lastCall = r.Number, time.Time{} //`, `//`),
	off("double barrier: results are kept for the slow", in(barrier, "TestTheResultsAreKept"),
		"Barrier.deleted", `!isOfRound(name, kept)`, `!isOfRound(name, nil)`),
	off("double barrier: results of former rounds are deleted", in(barrier, "TestEveryMemberGets"),
		"Member.begin", `more = append(more, b.deleted(there, next.Past)...)`, ``),
	off("double barrier: the others are told why a member gave up", in(barrier, "TestWhyAMemberGaveUp"),
		"leaver.close", `l.barrier.reasons(ctx, l.open.round, l.missing)`, `nil`),
	off("double barrier: reasons of former rounds are deleted", in(barrier, "TestWhyAMemberGaveUp"),
		"Member.begin", `b.tidy(ctx, there, next.Past)`, ``),
	off("double barrier: more than a share is refused", in(barrier, "TestMoreThanAShare"),
		"Barrier.admitShare", `if len(data) > b.share {`, `if false {`),
	off("double barrier: a request to give up leaves what was brought", in(barrier, "TestAMemberThatIsAskedToGiveUpKeeps"),
		"parse", `case !more || len(from) < len(data):`, `case len(rest) >= 0 || more:`),
	off("double barrier: results that were changed are not believed", in(barrier, "TestResultsThatSomebody"),
		"decodeVector", `case length > len(rest):
			return nil, errNoVector`, `case length > len(rest):
			length = len(rest)
			fallthrough`),
	off("double barrier: the number of the round", in(barrier, "TestTheOutcomeIsKept"),
		"state.outcome", `if s.Number == number && !s.Open {`, `if !s.Open {`),
	off("double barrier: a member that comes again is not counted twice", in(barrier, "TestAMemberThatComesAgain"),
		"Barrier.enter", `return b.client.Delete(ctx, hold.Node(), -1)`, `return nil`),
	off("double barrier: programs that disagree about the size are refused",
		in(barrier, "TestAMemberIsRefusedWhenTheSize"),
		"Member.look", `case r.Size != b.size:`, `case false:`),
	off("double barrier: a newcomer looks again before it refuses", in(barrier, "TestThoseWhoAgreeOnAnotherNumber"),
		"Barrier.admit", `		r, err := b.ready.watchOrMake(v, b.size)`,
		`		if readyWas == 0 {
			first, err = b.ready.watchOrMake(v, b.size)
		}
		r := first`).
		and("Barrier.admit", `	var line []coord.Contender`, `	var first snapshot
	var line []coord.Contender`),
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
		"Barrier.Set", `continue // opened since`, `return nil`),
	off("another size is set by a list that is no older than the record", in(barrier, "TestARoundThatHasBegunMeanwhile"),
		"Barrier.admit", `r.stat.Mzxid == readyWas`, `readyWas != 0`),
}
