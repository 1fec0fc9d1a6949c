package main

// recovery is how a claim comes to be and goes, whatever becomes of the
// replies.
var recovery = []mutant{
	{
		guard: "recovery: a lost create is looked for at all",
		edit: edit{
			decl: "Node.Create",
			old:  `if found, failure := n.recover(); found || failure != nil {`,
			new:  `if found, failure := false, error(nil); found || failure != nil {`,
		},
		tests: []suite{{pkg: coord, run: "TestACreateWhoseReplyIsLostBeforeALaggingServerIsNotMadeAgain"}},
	},
	{
		guard: "recovery: the node's owner",
		edit: edit{
			decl: "Node.find",
			old:  `if node.Stat.Owner != n.sess.ID() || as == another {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestALostCreateIsNotMistakenForTheSameNodeOfAnotherSession"}},
	},
	{
		guard: "recovery: the GUID",
		edit: edit{
			decl: "Node.mayHave",
			old:  `return strings.HasPrefix(name, n.Spec.Name)`,
			new:  `return strings.HasPrefix(name, n.Spec.Name[:3]) // _c_`,
		},
		tests: []suite{{pkg: coord, run: "TestALostCreateIsNotMistakenForAnotherClaimOfTheSameClient"}},
	},
	{
		guard: "janitor: an abandoned create",
		edit: edit{
			decl: "claim.makeNode",
			old:  `cl.leave(cl.atOnce) // no caller waits for it any more`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestAnAcquireThatIsGivenUpBeforeTheReplyToItsCreate"}},
	},
	{
		guard: "janitor: a delete is repeated",
		edit: edit{
			decl: "Node.Delete",
			old:  `case n.sess.Err() != nil, IsLost(err):`,
			new:  `case n.sess.Err() != nil, IsLost(err): return nil`,
		},
		tests: []suite{{pkg: coord, run: "TestADeleteThatIsLostIsMadeAgain"}},
	},
	{
		guard: "janitor: a lost hold's node is deleted",
		edit: edit{
			decl: "claim.losing",
			old:  `cl.leave(cl.sess.Enqueue)`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestALostHoldsNodeIsDeletedWhenTheSessionSurvives"}},
	},
	{
		guard: "a missing directory is made again",
		edit: edit{
			decl: "claim.create",
			old:  `return cl.sess.EnsurePath(ctx, cl.node.Spec.Dir, cl.client.opts.acl)`,
			new:  `return ErrNoNode`,
		},
		tests: []suite{{pkg: coord, run: "TestADirectoryThatTheServerHasReaped"}},
	},
	{
		guard: "a missing parent is made again",
		edit: edit{
			decl: "Session.EnsurePath",
			old:  `case errors.Is(err, wire.ErrNoNode):`,
			new:  `case false && errors.Is(err, wire.ErrNoNode):`,
		},
		tests: []suite{{pkg: coord, run: "TestADirectoryWhoseParentIsRemovedMeanwhile"}},
	},
	{
		guard: "recovery: a claim among others of its name is told by its version, 1",
		edit: edit{
			decl: "Node.Version",
			old:  `return 1 + n.written.Load()`,
			new:  `return -1`,
		},
		tests: []suite{{pkg: coord, run: "TestAReleaseLeavesTheNodeAlone"}},
	},
	{
		guard: "janitor: a node that is another's by now is left alone",
		edit: edit{
			decl: "Node.DeleteOnce",
			old:  `case !errors.Is(err, wire.ErrBadVersion):`,
			new:  `default:`,
		},
		tests: []suite{{pkg: coord, run: "TestAReleaseLeavesTheNodeAlone"}},
	},
	{
		guard: "janitor: a claim's node goes though what proved it is gone",
		edit: edit{
			decl: "Node.DeleteOnce",
			old:  `at >= 0 && at < len(n.Spec.Proof) && errors.Is(err, wire.ErrNoNode) {`,
			new:  `false {`,
		},
		tests: []suite{{pkg: coord, run: "TestAReleaseDeletesTheNodeAlso"}},
	},
	{
		guard: "janitor: a claim's node goes only while what proves it holds",
		edit: edit{
			decl: "Node.DeleteOnce",
			old:  `append(slices.Clone(n.Spec.Proof), del)`,
			new:  `append(slices.Clone(n.Spec.Proof[:0]), del)`,
		},
		tests: []suite{{pkg: coord, run: "TestAReleaseDeletesNothing"}},
	},
	{
		guard: "janitor: a node of a session that was given up goes before the next is made",
		edit: edit{
			decl: "Client.acquire",
			old:  `if err := c.removeFormer(ctx, cl); err != nil {`,
			new:  `if err := error(nil); err != nil {`,
		},
		tests: []suite{{pkg: coord, run: "TestAContenderWhoseSessionWasGivenUp"}},
	},
	{
		guard: "strays: looked for when the session is connected again",
		edit: edit{
			decl: "Client.notify",
			old: `		c.nodes.Connected(s)
`,
			new: ``,
		},
		tests: []suite{{pkg: coord, run: "TestANodeThatAServerMakesLate"}},
	},
	{
		guard: "strays: the session probes while a create is in doubt",
		edit: edit{
			decl: "Node.expectLate",
			old:  `		n.sess.AddClaim()`,
			new: `		n.sess.AddClaim()
		n.sess.RemoveClaim()`,
		},
		tests: []suite{{pkg: coord, run: "TestANodeThatAServerMakesAfter|TestTheSearchForLateCreatesEnds"}},
	},
	{
		guard: "strays: the claim's own node is none",
		edit: edit{
			decl: "Node.isLate",
			old:  `if n.live.Load() && name == n.Name() {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestANodeThatAServerMakesLate"}},
	},
	{
		guard: "strays: nor is that of another claim of the same name",
		edit: edit{
			decl: "Node.isLate",
			old:  `as != another && !n.isWanted(as), nil`,
			new:  `as != another, nil`,
		},
		tests: []suite{{pkg: coord, run: "TestAnotherClaimOfTheName"}},
	},
	{
		guard: "strays: one that was asked for is one, too",
		edit: edit{
			decl: "Node.isLate",
			old:  `as != another && !n.isWanted(as), nil`,
			new:  `as == ours && !n.isWanted(as), nil`,
		},
		tests: []suite{{pkg: coord, run: "TestANodeOfANameThatAServer"}},
	},
	{
		guard: "strays: all recipes, by the simulation",
		edit: edit{
			decl: "Node.isLate",
			old:  `return !n.Spec.Plain ||`,
			new:  `return false &&`,
		},
		tests: []suite{bySimulation},
	},
	{
		guard: "exactly once: what was refused is not carried out late",
		edit: edit{
			decl: "witness.try",
			old: `			if lost {
				spent`,
			new: `			if false {
				spent`,
		},
		tests: []suite{{pkg: coord, run: "TestATransactionThatWasRefusedIsNot"}},
	},
	{
		guard: "strays: those of a downgrade that was given up",
		edit: edit{
			decl: "Node.Create",
			old:  `	defer n.attempted()`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestADowngradeThatIsCarriedOutAfter"}},
	},
	{
		guard: "strays: a node that is gone is not known any more",
		edit: edit{
			decl: "Node.Forget",
			old:  `n.live.Store(false)`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestANodeOfANameThatAServerMakesAfterItsClaim"}},
	},
	{
		guard: "strays: what fails in passing is tried again",
		edit: edit{
			decl: "Host.search",
			old: `				h.postpone(all, left)
`,
			new: ``,
		},
		tests: []suite{{pkg: coord, run: "TestTheSearchForStraysOutlasts"}},
	},
	{
		guard: "strays: a later attempt prolongs the doubt",
		edit: edit{
			decl: "Node.expectLate",
			old:  `		l.over.Stop() // one that is too late for that finds another`,
			new:  `		return`,
		},
		tests: []suite{{pkg: coord, run: "TestALaterAttemptProlongs"}},
	},
	{
		guard: "exactly once: a fence whose reply is lost is known again",
		edit: edit{
			decl: "witness.fence",
			old:  `case string(node.Data) == string(fenced):`,
			new:  `case string(node.Data) == "":`,
		},
		tests: []suite{{pkg: coord, run: "TestARefusalIsReturnedAlsoWhenTheReplyToItsFenceIsLost"}},
	},
	{
		guard: "queue: a lost reply to an Ack is found out by a witness, and not by what is missing",
		edit: edit{
			decl: "witness.try",
			old:  `verdict := callersOwn(err, 1)`,
			new: `verdict := callersOwn(err, 1)
			if lost && errors.Is(err, ErrNoNode) {
				return nil
			}`,
		},
		tests: []suite{{pkg: items, run: "TestF57"}},
	},
}
