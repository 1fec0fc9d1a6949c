package main

// recovery is how a claim comes to be and goes, whatever becomes of the replies.
var recovery = []mutant{
	{
		guard: "recovery: a write before the listing",
		edit: edit{
			file: "coord/recovery.go",
			old: `	if err := cl.sess.Flush(ctx); err != nil {
		return false, err
	}
	listing, err := cl.sess.List(ctx, cl.dir)`,
			new: `	listing, err := cl.sess.List(ctx, cl.dir)`,
		},
		tests: []suite{{pkg: coord, run: "TestACreateWhoseReplyIsLostBeforeALaggingServerIsNotMadeAgain"}},
	},
	{
		guard: "recovery: a lost create is looked for at all",
		edit: edit{
			file: "coord/claim.go",
			old:  `if found, err := cl.recover(name); found || err != nil {`,
			new:  `if found, err := false, error(nil); found || err != nil {`,
		},
		tests: []suite{{pkg: coord, run: "TestACreateWhoseReplyIsLostBeforeALaggingServerIsNotMadeAgain"}},
	},
	{
		guard: "recovery: the node's owner",
		edit: edit{
			file: "coord/recovery.go",
			old:  `if node.Stat.Owner != cl.sess.ID() || as == anothers {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestALostCreateIsNotMistakenForTheSameNodeOfAnotherSession"}},
	},
	{
		guard: "recovery: the GUID",
		edit: edit{
			file: "coord/recovery.go",
			old:  `return strings.HasPrefix(name, prefix)`,
			new:  `return strings.HasPrefix(name, prefix[:3]) // _c_`,
		},
		tests: []suite{{pkg: coord, run: "TestALostCreateIsNotMistakenForAnotherClaimOfTheSameClient"}},
	},
	{
		guard: "janitor: an abandoned create",
		edit: edit{
			file: "coord/claim.go",
			old: `			return
		}
		cl.leave()
	}
	if cl.sess.Go(finish) != nil {`,
			new: `			return
		}
	}
	if cl.sess.Go(finish) != nil {`,
		},
		tests: []suite{{pkg: coord, run: "TestAnAcquireThatIsGivenUpBeforeTheReplyToItsCreate"}},
	},
	{
		guard: "janitor: a delete is repeated",
		edit: edit{
			file: "coord/leave.go",
			old:  `case !transient(err):`,
			new:  `case errors.Is(err, ErrDisconnected): return nil`,
		},
		tests: []suite{{pkg: coord, run: "TestADeleteThatIsLostIsMadeAgain"}},
	},
	{
		guard: "janitor: a lost hold's node is deleted",
		edit: edit{
			file: "coord/own.go",
			old:  `return func() { cl.leaveBy(cl.sess.Enqueue) }, tell`,
			new:  `return func() {}, tell`,
		},
		tests: []suite{{pkg: coord, run: "TestALostHoldsNodeIsDeletedWhenTheSessionSurvives"}},
	},
	{
		guard: "a missing directory is made again",
		edit: edit{
			file: "coord/claim.go",
			old:  `if err := cl.sess.EnsurePath(ctx, cl.dir, c.opts.acl); err != nil && !transient(err) {`,
			new:  `if true {`,
		},
		tests: []suite{{pkg: coord, run: "TestADirectoryThatTheServerHasReaped"}},
	},
	{
		guard: "a missing parent is made again",
		edit: edit{
			file: "coord/internal/session/ops.go",
			old:  `case errors.Is(err, ErrNoNode):`,
			new:  `case false && errors.Is(err, ErrNoNode):`,
		},
		tests: []suite{{pkg: coord, run: "TestADirectoryWhoseParentIsRemovedMeanwhile"}},
	},
	{
		guard: "recovery: a claim among others of its name is told by its version, 1",
		edit: edit{
			file: "coord/claim.go",
			old:  `return 1 + cl.written`,
			new:  `return -1`,
		},
		tests: []suite{{pkg: coord, run: "TestAReleaseLeavesTheNodeAlone"}},
	},
	{
		guard: "recovery: a downgrade whose reply was lost is looked for",
		edit: edit{
			file: "coord/downgrade.go",
			old:  `if found, err := next.recover(next.name); found || err != nil {`,
			new:  `if found, err := false, error(nil); found || err != nil {`,
		},
		tests: []suite{{pkg: rwlock, run: "TestADowngradeWhoseReplyIsLostIsFoundByItsGUID"}},
	},
	{
		guard: "janitor: a node that is another's by now is left alone",
		edit: edit{
			file: "coord/leave.go",
			old:  `if !errors.Is(err, ErrBadVersion) {`,
			new:  `if err != nil {`,
		},
		tests: []suite{{pkg: coord, run: "TestAReleaseLeavesTheNodeAlone"}},
	},
	{
		guard: "janitor: a claim's node goes though what proved it is gone",
		edit: edit{
			file: "coord/leave.go",
			old:  `refused.Index < len(cl.spec.Proof) && errors.Is(err, ErrNoNode) {`,
			new:  `false {`,
		},
		tests: []suite{{pkg: coord, run: "TestAReleaseDeletesTheNodeAlso"}},
	},
	{
		guard: "janitor: a claim's node goes only while what proves it holds",
		edit: edit{
			file: "coord/leave.go",
			old:  `append(slices.Clone(cl.spec.Proof), del)`,
			new:  `append(slices.Clone(cl.spec.Proof[:0]), del)`,
		},
		tests: []suite{{pkg: coord, run: "TestAReleaseDeletesNothing"}},
	},
	{
		guard: "janitor: a node of a session that was given up goes before the next is made",
		edit: edit{
			file: "coord/acquire.go",
			old:  `if err := c.bury(ctx, cl); err != nil {`,
			new:  `if err := error(nil); err != nil {`,
		},
		tests: []suite{{pkg: coord, run: "TestAContenderWhoseSessionWasGivenUp"}},
	},
	{
		guard: "strays: looked for when the session is connected again",
		edit: edit{
			file: "coord/client.go",
			old: `		c.lookForStrays(s)
`,
			new: ``,
		},
		tests: []suite{{pkg: coord, run: "TestANodeThatAServerMakesLate"}},
	},
	{
		guard: "strays: the session probes while a create is in doubt",
		edit: edit{
			file: "coord/stray.go",
			old:  `		cl.sess.AddClaim()`,
			new: `		cl.sess.AddClaim()
		cl.sess.RemoveClaim()`,
		},
		tests: []suite{{pkg: coord, run: "TestANodeThatAServerMakesAfter|TestTheSearchForLateCreatesEnds"}},
	},
	{
		guard: "strays: a doubt ends",
		edit: edit{
			file: "coord/stray.go",
			old:  `doubtLasts*cl.sess.Timeout()`,
			new:  `1000*cl.sess.Timeout()`,
		},
		tests: []suite{{pkg: coord, run: "TestTheSearchForLateCreatesEnds"}},
	},
	{
		guard: "strays: the claim's own node is none",
		edit: edit{
			file: "coord/stray.go",
			old:  `if name == cl.name && !cl.isRemoved() {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestANodeThatAServerMakesLate"}},
	},
	{
		guard: "strays: nor is that of another claim of the same name",
		edit: edit{
			file: "coord/stray.go",
			old:  `as != anothers && !cl.isWanted(as), nil`,
			new:  `as != anothers, nil`,
		},
		tests: []suite{{pkg: coord, run: "TestAnotherClaimOfTheName"}},
	},
	{
		guard: "strays: one that was asked for is one, too",
		edit: edit{
			file: "coord/stray.go",
			old:  `as != anothers && !cl.isWanted(as), nil`,
			new:  `as == asMade && !cl.isWanted(as), nil`,
		},
		tests: []suite{{pkg: coord, run: "TestANodeOfANameThatAServer"}},
	},
	{
		guard: "strays: all recipes, by the simulation",
		edit: edit{
			file: "coord/stray.go",
			old:  `return cl.spec.Name == "" ||`,
			new:  `return false &&`,
		},
		tests: []suite{bySimulation},
	},
	{
		guard: "exactly once: what was refused is not carried out late",
		edit: edit{
			file: "coord/once.go",
			old:  `case refused != nil && refused.Index > 0 && unknown:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: coord, run: "TestATransactionThatWasRefusedIsNot"}},
	},
	{
		guard: "strays: those of a downgrade that was given up",
		edit: edit{
			file: "coord/downgrade.go",
			old: `			next.disown() // what comes of a late attempt is nobody's
`,
			new: ``,
		},
		tests: []suite{{pkg: coord, run: "TestADowngradeThatIsCarriedOutAfter"}},
	},
	{
		guard: "strays: what fails in passing is tried again",
		edit: edit{
			file: "coord/stray.go",
			old: `				c.postpone(all, left)
`,
			new: ``,
		},
		tests: []suite{{pkg: coord, run: "TestTheSearchForStraysOutlasts"}},
	},
	{
		guard: "strays: a later attempt prolongs the doubt",
		edit: edit{
			file: "coord/stray.go",
			old:  `		d.over.Stop() // one that is too late for that finds another doubt`,
			new:  `		return`,
		},
		tests: []suite{{pkg: coord, run: "TestALaterAttemptProlongs"}},
	},
	{
		guard: "exactly once: a fence whose reply is lost is known again",
		edit: edit{
			file: "coord/once.go",
			old:  `if string(node.Data) == string(fenced) {`,
			new:  `if string(node.Data) == "" {`,
		},
		tests: []suite{{pkg: coord, run: "TestARefusalIsReturnedAlsoWhenTheReplyToItsFenceIsLost"}},
	},
	{
		guard: "ReleaseTxn: a refused repeat does not keep the hold",
		edit: edit{
			file: "coord/settle.go",
			old: `		case unknown:
			return h.unsettled(callersOwn(err, 1)) // an earlier attempt may be carried out late (see doubt)
`,
			new: ``,
		},
		tests: []suite{{pkg: coord, run: "TestAReleaseTxnWhoseRepeat|TestATransactionThatReleasesIsUnconfirmed"}},
	},
}
