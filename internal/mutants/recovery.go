package main

// recovery is how a claim comes to be and goes, even if replies are lost.
var recovery = []mutant{
	off("recovery: a lost create is looked for at all", in(coord, "TestACreateWhoseReplyIsLostBeforeALaggingServerIsNotMadeAgain"),
		"Create", `if made, failure := found(nodes); made || failure != nil {`,
		`if made, failure := false, error(nil); made || failure != nil {`),
	off("recovery: the node's owner", in(coord, "TestALostCreateIsNotMistakenForTheSameNodeOfAnotherSession"),
		"Node.find", `if node.Stat.Owner != n.sess.ID() || as == another {`, `if false {`),
	off("recovery: the GUID", in(coord, "TestALostCreateIsNotMistakenForAnotherClaimOfTheSameClient"),
		"Node.mayHave", `return strings.HasPrefix(name, n.Stem)`, `return strings.HasPrefix(name, n.Stem[:3]) // _c_`),
	off("janitor: an abandoned create", in(coord, "TestAnAcquireThatIsGivenUpBeforeTheReplyToItsCreate"),
		"together.join", `cl.leave(cl.atOnce) // no caller waits for it any more`, ""),
	off("janitor: a delete is repeated", in(coord, "TestADeleteThatIsLostIsMadeAgain"),
		"Node.Delete", `if n.Plain && n.hasGone() {`, `if true {`),
	off("janitor: a lost hold's node is deleted", in(coord, "TestALostHoldsNodeIsDeletedWhenTheSessionSurvives"),
		"claim.losing", `cl.leave(cl.sess.Enqueue)`, ""),
	off("a missing directory is made again", in(coord, "TestATokenIsTheNodesCzxid"),
		"claim.ensureDir", `return cl.sess.EnsurePath(ctx, cl.node.Dir, cl.client.opts.acl)`, `return ErrNoNode`),
	off("a missing parent is made again", in(coord, "TestADirectoryWhoseParentIsRemovedMeanwhile"),
		"Session.EnsurePath", `case errors.Is(err, wire.ErrNoNode):`, `case false && errors.Is(err, wire.ErrNoNode):`),
	off("recovery: a claim among others of its name is told by its version, 1", in(coord, "TestAReleaseLeavesTheNodeAlone"),
		"Node.Version", `return 1 + n.written.Load()`, `return -1`),
	off("janitor: a node that is another's by now is left alone", in(coord, "TestAReleaseLeavesTheNodeAlone"),
		"Node.DeleteOnce", `if !errors.Is(err, wire.ErrBadVersion) {`, `if true {`),
	off("janitor: a claim's node goes though what proved it is gone", in(coord, "TestAReleaseDeletesTheNodeAlso"),
		"Node.deleteProven", `case errors.Is(err, wire.ErrNoNode):`, `case false:`),
	off("janitor: a claim's node goes only while what proves it holds", in(coord, "TestAReleaseLeavesTheNodeAlone"),
		"Node.deleteProven", `append(slices.Clone(n.Proof), del)`, `append(slices.Clone(n.Proof[:0]), del)`),
	off("janitor: a deletion whose reply was lost is not repeated on the next claim of the name",
		in(coord, "TestADeletionWhoseReplyIsLostIsNotRepeated"),
		"Node.Delete", `if n.Plain && n.hasGone() {`, `if false {`),
	off("recovery: every claim of a name is told by its version", in(coord, "TestAReleaseLeavesTheNodeAlone"),
		"NameSpec.claim", `= &s, true, true, s.Data`, `= &s, true, len(s.With)+len(s.Proof) > 0, s.Data`),
	off("a name that a former session has is waited for", in(coord, "TestANameThatAFormerSession"),
		"claim.awaitFormer", `len(former) == 0 || cl.named == nil`, `true`),
	off("janitor: a node of a session that was given up goes before the next is made", in(coord, "TestAContenderWhoseSessionWasGivenUp"),
		"Client.acquire", `if err := cl.removeFormer(ctx); err != nil {`, `if err := error(nil); err != nil {`),
	off("strays: looked for when the session is connected again", in(coord, "TestANodeThatAServerMakesLate"),
		"Client.notify", `		c.nodes.Connected(s)
`,
		""),
	off("strays: the session probes while a create is in doubt", in(coord, "TestANodeThatAServerMakesAfter|TestTheSearchForLateCreatesEnds"),
		"Node.expectLate", `		n.sess.KeepOpen()`,
		`		n.sess.KeepOpen()
		n.sess.LetClose()`),
	off("strays: the claim's own node is none", in(coord, "TestANodeThatAServerMakesLate"),
		"Node.lateAs", `if n.live.Load() && name == n.Name() {`, `if false {`),
	off("strays: nor is that of another claim of the same name", in(coord, "TestAnotherClaimOfTheName"),
		"Node.lateAs", `(as == another || n.isWanted(as))`, `as == another`),
	off("strays: one that was asked for is one, too", in(coord, "TestANodeOfANameThatAServer"),
		"Node.lateAs", `(as == another || n.isWanted(as))`, `(as != ours || n.isWanted(as))`),
	off("strays: all recipes, by the simulation", bySimulation,
		"Node.lateAs", `return node.Stat.Czxid, nil`, `return 0, nil`),
	off("exactly once: what was refused is not carried out late", in(coord, "TestATransactionThatWasRefusedIsNot"),
		"witness.try", `			if lost {
				spent`,
		`			if false {
				spent`),
	off("strays: those of a downgrade that was given up", in(coord, "TestADowngradeThatIsCarriedOutAfter"),
		"Create", `			n.attempted()`, `			_ = n`),
	off("strays: a node that is gone is not known any more", in(coord, "TestANodeOfANameThatAServerMakesAfterItsClaim"),
		"Node.Forget", `n.live.Store(false)`, ""),
	off("strays: what fails in passing is tried again", in(coord, "TestTheSearchForStraysOutlasts"),
		"Host.search", `				h.postpone(all, left)
`,
		""),
	off("strays: a later attempt prolongs the doubt", in(coord, "TestALaterAttemptProlongs"),
		"Node.expectLate", `		l.over.Stop() // one that is too late for that finds another`, `		return`),
	off("exactly once: a fence whose reply is lost is known again", in(coord, "TestARefusalIsReturnedAlsoWhenTheReplyToItsFenceIsLost"),
		"witness.fence", `case string(node.Data) == string(fenced):`, `case string(node.Data) == "":`),
	off("queue: a lost reply to an Ack is found out by a witness, and not by what is missing", in(items, "TestF57"),
		"witness.try", `verdict := err`,
		`verdict := err
			if lost && errors.Is(err, wire.ErrNoNode) {
				return nil
			}`),
}

// once is how transactions are carried out once, and what they leave.
var once = []mutant{
	off("exactly once: the witness's version", in(coord, "TestATransactionWhoseReplyIsLost"),
		"witness.try", `all := append([]wire.Op{w.set(nil)}, ops...)`,
		`all := append([]wire.Op{w.set(nil)}, ops...)
	all[0].Version = -1`),
	off("exactly once: a repeat that finds another version had taken effect", in(coord, "TestATransactionWhoseReplyIsLost"),
		"witness.try", `case refused == 0 && lost && errors.Is(err, wire.ErrBadVersion):`, `case false:`),
	off("exactly once: a first attempt that finds another version had not", in(coord, "TestAWitnessDeletedByHand"),
		"witness.try", `case refused == 0 && lost && errors.Is(err, wire.ErrBadVersion):`,
		`case refused == 0 && errors.Is(err, wire.ErrBadVersion):`),
	off("exactly once: a repeat that finds no witness tells nothing", in(coord, "TestATransactionWhoseWitnessIsDeletedBeforeItsRepeat"),
		"witness.try", `case lost:`, `case false:`),
	off("exactly once: another session has another witness", in(coord, "TestAWitnessDeletedByHand"),
		"Set.takeIn", `	o.idle = slices.DeleteFunc(o.idle, func(w *witness) bool { return w.sess.Err() != nil })
	for i, w := range slices.Backward(o.idle) {
		if w.sess == s {`,
		`	for i, w := range slices.Backward(o.idle) {
		if true {`),
	off("exactly once: a witness that is of no more use is deleted", in(coord, "TestATransactionLeftInItsMiddle"),
		"Set.Txn", `			w.drop()
		}
		if`,
		`		}
		if`),
	off("exactly once: a witness given up while it is made is deleted after its create", in(coord, "TestA.*Witness"),
		"Set.make", `if err == nil && left {`, `if false {`),
	off("a release by transaction: the own node is known again, whatever was written into it",
		in(coord, "TestAReleaseByTransactionIsCarriedOut"),
		"Node.Rewritten", `if !n.Shared {`, `if true {`),
	off("a release by transaction: nothing else ends the claim meanwhile", in(coord, "TestAHoldThatATransactionIsReleasing"),
		"Hold.mayEnd", `	case cl.deleting != nil:`, `	case false:`),
	off("a release by transaction: a missing node is a loss", in(coord, "TestAReleaseByTransactionOfAHoldThatWasBroken"),
		"ExactlyOnce.releaseBy", `return h, loss{ErrNodeDeleted}`, `return nil, nil`),
	off("a release by transaction: the own deletion of the node waits for it", in(coord, "TestTheNodeOfALostHoldStays"),
		"claim.leave", `if deleting != nil {`, `if false {`),
	off("a record is written for the version that was read", in(coord, "TestChangesOfARecordByMany"),
		"Record.Change", `op := coord.SetOp(r.path, next, stat.Version)`, `op := coord.SetOp(r.path, next, -1)`),
	off("a release by transaction: a release that is called meanwhile waits for it", in(coord, "TestAReleaseWaitsUntilTheTransaction"),
		"claim.atOnce", ` || cl.deleting != nil || len(cl.node.Proof) > 0`, ` || len(cl.node.Proof) > 0`),
	off("a release by transaction: its own deletion of the node is no loss", in(coord, "TestAReleaseByTransactionIsNoLoss"),
		"claim.losing", ` || cl.deleting != nil && errors.Is(cause, ErrNodeDeleted)`, ` || false && errors.Is(cause, ErrNodeDeleted)`),
}
