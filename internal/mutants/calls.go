package main

import "slices"

// calls: what every call promises about its context and about unexpected
// answers, and which caller is told what.
var calls = []mutant{
	off("watches: a failure that is older than the call is no answer to it", in(inside, "TestAFailureThatIsOlder"),
		"Watches.Await", `if a.setting.err != nil && a.shared {`, `if false {`),
	off("listings: two of a directory are under way, and the other callers share the next",
		in(coord, "TestACrowdInOneClientListsTogether"),
		"Listings.next", `of.waiting = of.flying == listingsAhead`, `of.waiting = false`),
	off("window: a tick that is told is believed", in(coord, "TestALongTickIsBelieved"),
		"Lag", `if tick == 0 {`, `if true {`),
	off("losses: all holds are told before the observer is", in(coord, "TestAllHoldsEndBeforeTheObserverHearsOfALoss"),
		"Client.notify", `			leave, tell = append(leave, l), append(tell, t)`,
		`			l()
			t()`),
	off("losses: all holds are told before the first node is deleted", in(coord, "TestEveryHoldEndsBeforeTheFirst"),
		"Client.notify", `			leave, tell = append(leave, l), append(tell, t)`,
		`			l()
			tell = append(tell, t)`),
	off("our watch is tried again whatever the server answers", in(coord, "TestAServerThatStumblesOverTheOwnWatch"),
		"Node.Watch", `if err == nil || n.sess.Err() != nil {`, `if err == nil || !isPassing(err) {`),
	off("the deletion is tried again whatever the server answers", in(coord, "TestAServerThatStumblesOverTheDeletion"),
		"Node.Delete", `case errors.Is(err, zk.ErrNoAuth):`, `case true:`),
	off("recovery: a named claim that was asked for is still known", in(coord, "TestANamedClaimThatIsAskedFor"),
		"Node.examine", `	case n.host.IsRequest(node.Data):`, `	case false:`),
	off("nothing is sent for a context that has ended", in(coord, "TestNothingIsAskedOfTheServer"),
		"Session.awaitUp", `case ctx.Err() != nil:`, `case false:`),
	off("Do: a release does not outlive its context for long", in(coord, "TestDoEndsWithItsContext"),
		"Do", `releasing, cancel := recipe.Grace(ctx)`, `releasing, cancel := ctx, func() {}`),
	off("a context that ends during a release ends the release", in(coord, "TestDoEndsWithAContext"),
		"Bound", `if ctx.Value(boundKey{}) != nil {`, `if false {`),
	off("Close waits for a server's answer, but not for long", in(coord, "TestCloseGivesAHungServer"),
		"Session.closeInOrder", `w.CloseSession(min(closeLimit, s.Timeout()/handshakeShare))`, `w.CloseSession(s.Timeout())`),
	off("double barrier: the chroot counts for what fits into a transaction", in(barrier, "TestAChrootCounts"),
		"New", `len(own.Chroot)+len(path)`, `len(path)`),
	off("inside of a hold: only claims of the same line concern it", in(coord, "TestAHoldOfAnotherLine"),
		"Spec.inside", `case !ok || ctx.Err() != nil || !held.claim.spec.Line.has(s.Kind):`, `case !ok || ctx.Err() != nil:`),
	off("a request for a claim is written at its version", in(looking, "TestNothingIsDoneToASuccessor"),
		"ask", `_, err := c.Set(ctx, node, request, stat.Version)`,
		`_, err := c.Set(ctx, node, request, -1)`),
	off("a claim is broken at its version", in(looking, "TestNothingIsDoneToASuccessor"),
		"BreakClaim", `err := c.Delete(ctx, node, stat.Version)`, `err := c.Delete(ctx, node, -1)`),
	off("a claim is told from its successor by its czxid",
		in(looking, "TestNothingIsDoneToASuccessor|TestRevokeAndWaitForces"),
		"toClaim", `case !there, claim != 0 && stat.Czxid != claim:`, `case !there:`),
	off("a claim that is waited for is gone when another has its name", in(looking, "TestRevokeAndWaitEnds"),
		"awaitGone", `err == nil && stat.Czxid > czxid`, `err == nil && stat.Czxid < 0`),
	off("a claim that may heed the bare request only gets that", in(looking, "TestARequestIsBareUnless"),
		"ask", `if !dialect.NamesOwner(kept) {`, `if false {`),
	off("election: a request does not take back what was proclaimed meanwhile",
		in(elect, "TestARequestKeepsWhatTheLeader"),
		"note", `dialect.Request(c.Info().Dialect, dialect.Own(data)), stat.Version)`,
		`dialect.Request(c.Info().Dialect, dialect.Own(data)), -1)`),
	off("what is no claim is not revoked", in(looking, "TestWhatIsNoClaim"),
		"ask", `if stat.Owner == 0 {`, `if false {`),
	off("command: a note shows what it quotes", in("./cmd/internal/term", "TestANoteShows"),
		"Streams.Note", `Visible(`, `fmt.Sprint(`),
	off("command: a note is not dropped for its length", in("./cmd/internal/term", "TestAnObjectIsNotDropped"),
		"Notes.add", `len(n.pending) < most`, `len(n.pending)+len(p) <= most`),
	off("command: a holder whose node may not be read is known", in(shown, "TestHeldKnowsAHolder"),
		"askOutside", `if c.Age == nil {`, `if false {`),
	off("command: a claim that may not be read is no orphan", in(shown, "TestAnItemWhoseClaimMayNotBeRead"),
		"QueueReport.item", `if !claim.Since.IsZero() {`, `if true {`),
	off("a claim that the server has not seen yet is waited for", in(coord, "TestAClaimThatTheServer"),
		"Await", `c.Synced(), node, token)`, `c, node, token)`),
	off("record: a decision against the change is made from the latest data",
		in(values, "TestATrySetIsRefused").or(counts, "TestASumIsOutOfRange"),
		"Record.Change", `case err != nil && from == r:`, `case false:`),
	off("semaphore: a limit is refused by the latest one", in(sema, "TestALimitIsRefused"),
		"Semaphore.agree", `{s.client, s.client.Synced()}`, `{s.client}`),
	off("group: the data of the next member stay", in(groups, "TestTheDataOfTheNextMember"),
		"Membership.Set", `stat.Czxid != m.Token()`, `false`),
	off("group: whose node it is shows at the latest state", in(groups, "TestTheDataOfTheNextMember"),
		"Membership.Set", `m.client.Synced()`, `m.client`),
	off("a look does not go back in time", in(coord, "TestALookNeverGoesBack"),
		"Watches.fire", `fired == Deleted && w != nil && !w.armed`, `false`),
	off("a claim that is found near the front watches its node soon", in(coord, "TestAClaimThatIsFoundNear"),
		"waiter.remember", `w.cl.node.WatchSooner()`, ""),
	off("queue: the ack of a batch outlasts its context once", in(items, "TestAnAckOfABatchOutlasts"),
		"Queue.AckBatch", `if isUnsent(err) {`, `if false {`),
	off("queue: an ack that is not sent gives the item back", in(items, "TestAnAckWhoseContextEnds"),
		"Item.end", `case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):`, `case false:`),
}

// bySimulation runs ten times the seeds of CI, since the faults that show that
// a guard is missing are rare.
var (
	bySimulation = suites{{pkg: simulation, run: "WhateverGoesWrong", flags: "-seeds=400"}}
	moreSeeds    = suites{{pkg: simulation, run: "WhateverGoesWrong", flags: "-seeds=1200"}}
	wrongClocks  = suites{{pkg: simulation, run: "WhateverGoesWrong", flags: "-focus=clocks -seeds=400"}}
)

// judges: guards whose absence the simulation itself must notice. For the
// others, a test made for them does.
var judges = []mutant{
	off("simulation: a writer waits for readers", bySimulation,
		"writeRule", `if len(ahead) == 0 {`, `if len(ahead) == 0 || ahead[len(ahead)-1].Kind == "read" {`),
	off("simulation: leases within the limit", bySimulation,
		"Semaphore.room", `return len(names)-younger <= limit, nil`, `return len(names)-younger <= limit+1, nil`),
	off("simulation: a run that began counts", bySimulation,
		"Run.next", `found.Attempt >= r.job.attempts {`, `false {`),
	again("window: its end ends holds", bySimulation),
	again("a transaction of a hold checks the hold's node", bySimulation),
	again("a hold watches its own node", bySimulation),
	again("recovery: a lost create is looked for at all", bySimulation),
	again("janitor: a delete is repeated", bySimulation),
	again("exactly once: the witness's version", bySimulation),
	again("exactly once: a repeat that finds another version had taken effect", bySimulation),
	again("re-check: a listing after a writer's going", bySimulation),
	again("job: the holder of the lock looks at the record", bySimulation),
	again("job: only the holder of the lock puts an end on record", bySimulation),
	again("job: no wall clock says how old a record is", wrongClocks),
	again("schedule: a host whose clock is ahead decides for nobody else", wrongClocks),
	again("job: an entry of an earlier run deletes no record", moreSeeds), // 7 of them show it
	again("election: what a lost leader says does not end Run", bySimulation),
}

// again has the simulation notice, too, that a guard is missing.
func again(guard string, seeds suites) mutant {
	for _, m := range slices.Concat(recovery, window, holds, line, once, election, jobs, schedules) {
		if m.guard == guard {
			return mutant{"simulation: " + guard, m.edits, seeds}
		}
	}
	panic("there is no guard " + guard)
}
