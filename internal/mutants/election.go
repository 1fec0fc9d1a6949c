package main

// election is the election, with the barrier and the reads that both make.
var election = []mutant{
	off("reads that do not go back in time", in(gate, "TestAWaiterAtAServerThatLags").or(elect, "TestALeaderOfThePast"),
		"Client.catchUp", `err := s.Flush(ctx)`, `err := ctx.Err()`),
	off("barrier: a barrier that was closed again had been opened", in(gate, "TestAWaiterThatWasAway"),
		"Barrier.Wait", ` || err == nil && closed != 0 && closed != stat.Czxid {`,
		` || err == nil && closed != 0 && closed != stat.Czxid && false {`),
	off("election: a request to step down outlives a proclamation", in(elect, "TestARequestToStepDownIsHeededBefore"),
		"Term.Proclaim", `case inspect.IsRevocation(before):`, `case false:`),
	off("election: a term whose window is over is not returned", in(elect, "TestATermWhoseWindowEnds"),
		"Election.stand", `if lost := h.Err(); lost != nil {`, `if lost := h.Err(); false && lost != nil {`),
	off("election: what a lost leader says does not end Run", in(elect, "TestRunWaitsForItsFunction"),
		"serve", `if lost {`, `if lost && false {`),
	off("election: nothing is written into a candidate's node", in(elect, "TestNothingIsWrittenInto").or(coord, "TestOnlyALeaderHasANotice"),
		"Notice", `return node[:strings.LastIndex(node, marker)+len(marker)]`, `return node + marker[:0]`),
	off("a part is made only while its hold's node exists", in(coord, "TestAPartIsNotMade"),
		"Hold.Attach", `h.Txn(context.Background(), EphemeralOp(path, part.spec.Data))`,
		`c.txn(context.Background(), part.sess, []Op{EphemeralOp(path, part.spec.Data)})`),
	off("a part goes with its hold, also when that is broken", in(coord, "TestAPartGoes"),
		"removal.end", `r.over(cmp.Or(err, removeParts(r.claim.partsLeft())))`, `r.over(cmp.Or(err))`),
	off("a part of a hold that a transaction released goes, too", in(coord, "TestAPartGoes"),
		"claim.releasedBy", `if len(parts) > 0 {`, `if len(parts) > 0 && false {`),
	off("election: a candidate that is gone is not the first any more", in(elect, "TestAFirstThatGoes"),
		"Election.first", `		if errors.Is(err, coord.ErrNoNode) {
			continue
		}`,
		""),
	off("Retry: a lost hold does not come back", in(coord, "TestRetryMakesNoCall"),
		"Client.Retry", ` || errors.Is(err, ErrLost)`, ""),
	off("election: Run is not refused when it campaigns again", in(elect, "TestF56"),
		"Election.Run", `campaigning = recipe.Patient(ctx)`, ""),
	off("health: a leader that is not well ends its term", in(elect, "TestASickLeaderResignsAndStands"),
		"Election.once", `well, stop := e.health.While(campaigning)`, `well, stop := context.WithCancel(campaigning)`),
	off("health: who is not well does not stand", in(elect, "TestASickLeaderResignsAndStands"),
		"Election.once", `e.health.Await(ctx)`, `ctx.Err()`),
	off("health: the end of a term that was not well does not end Run", in(elect, "TestASickLeaderResignsAfter").or(elect, "TestASickCandidate"),
		"Election.once", `errors.Is(context.Cause(well), recipe.ErrUnwell)`, `false`),
	off("health: only failures in a row count", in(elect, "TestFewerFailures"),
		"Health.While", `failed = 0
`, ""),
	off("health: a check that does not answer has failed", in(elect, "TestASickLeaderResignsAndStands"),
		"Health.Check", `	case <-limited.Done():
		return Ended(limited)
	}
}`, `	case <-ctx.Done():
		return Ended(ctx)
	}
}`),
	off("health: a check is not called beside itself", in(elect, "TestACheckRunsOnce"),
		"Health.Check", `defer func() { <-h.running }()`, `<-h.running`),
	off("handler: a term that cannot be trusted is over", in(elect, "TestALeaderThatIsCutOffIsNot"),
		"Handler", `t != nil && t.Err() == nil`, `t != nil`),
	off("priority: the highest leads next", in(elect, "TestTheCandidateOfTheHighest"),
		"Election.outranked", `priority > *e.rank`, `priority != priority`),
	off("priority: it is no part of the data", in(elect, "TestTheCandidateOfTheHighest"),
		"Split", `	own, _, _ = bytes.Cut(data, []byte(noteLine))`, `	own = data`),
	off("transfer: those before the named one step behind it", in(elect, "TestALeaderNamesTheNext"),
		"Election.mayLead", `return c.Name == next })`, `return c.Name == next && false })`),
	off("transfer: one who is named steps behind nobody", in(elect, "TestOneWhoIsNamedStepsBehindNobody"),
		"Election.mayLead", `named && next == path.Base(h.Node()) || `, ""),
	off("transfer: another library's candidate does not step aside", in(elect, "TestATransferPast"),
		"Election.name", `if !inspect.IsOurs(other) {`, `if false && !inspect.IsOurs(other) {`),
	off("transfer: Curator's and Kazoo's candidates are known", in(elect, "TestATransferPast"),
		"IsOurs", `digits[12] == '8'`, `digits[12] != 0`),
	off("transfer: the leader resigns only if the named one is there", in(elect, "TestATransferToOneWhoIsGone"),
		"Term.Transfer", `if err == nil && leader != candidate {`, `if leader != candidate {`),
	off("transfer: it ends when the named one leads", in(elect, "TestALeaderIsAskedToHand"),
		"Election.awaitTerm", `if err != nil || at > 0 {`, `if err != nil || at < 0 {`),
	off("transfer: the directory's own data are kept", in(elect, "TestALeaderNamesTheNext"),
		"Election.name", `inspect.Note(inspect.OwnData(data), nextKey`, `inspect.Note(inspect.OwnData(data[:0]), nextKey`),
}
