package main

// once is how transactions are carried out once, and what they leave.
var once = []mutant{
	{
		guard: "exactly once: the witness's version",
		edit: edit{
			decl: "witness.try",
			old:  `all := append([]Op{SetOp(w.path(), nil, w.version)}, ops...)`,
			new:  `all := append([]Op{SetOp(w.path(), nil, -1)}, ops...)`,
		},
		tests: []suite{{pkg: coord, run: "TestATransactionWhoseReplyIsLost"}},
	},
	{
		guard: "exactly once: a repeat that finds another version had taken effect",
		edit: edit{
			decl: "witness.try",
			old:  `case refused != nil && lost && errors.Is(err, ErrBadVersion):`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: coord, run: "TestATransactionWhoseReplyIsLost"}},
	},
	{
		guard: "exactly once: a first attempt that finds another version had not",
		edit: edit{
			decl: "witness.try",
			old:  `case refused != nil && lost && errors.Is(err, ErrBadVersion):`,
			new:  `case refused != nil && errors.Is(err, ErrBadVersion):`,
		},
		tests: []suite{{pkg: coord, run: "TestAWitnessDeletedByHand"}},
	},
	{
		guard: "exactly once: a repeat that finds no witness tells nothing",
		edit: edit{
			decl: "witness.try",
			old:  `case lost:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: coord, run: "TestATransactionWhoseWitnessIsDeletedBeforeItsRepeat"}},
	},
	{
		guard: "exactly once: another session has another witness",
		edit: edit{
			decl: "ExactlyOnce.takeIn",
			old: `	o.idle = slices.DeleteFunc(o.idle, func(w *witness) bool { return w.sess.Err() != nil })
	for i, w := range slices.Backward(o.idle) {
		if w.sess == s {`,
			new: `	for i, w := range slices.Backward(o.idle) {
		if true {`,
		},
		tests: []suite{{pkg: coord, run: "TestAWitnessDeletedByHand"}},
	},
	{
		guard: "exactly once: a witness that is of no more use is deleted",
		edit: edit{
			decl: "ExactlyOnce.txn",
			old: `			w.drop()
		}
		if`,
			new: `		}
		if`,
		},
		tests: []suite{{pkg: coord, run: "TestATransactionLeftInItsMiddle"}},
	},
	{
		guard: "exactly once: a witness given up while it is made is deleted after its create",
		edit: edit{
			decl: "ExactlyOnce.make",
			old: `			if <-made == nil {
				w.drop()`,
			new: `			if <-made == nil {`,
		},
		tests: []suite{{pkg: coord, run: "TestA.*Witness"}},
	},
	{
		guard: "a release by transaction: the own node is known again, whatever was written into it",
		edit: edit{
			decl: "Node.Rewritten",
			old:  `n.czxid != 0 && node.Stat.Czxid != n.czxid || n.czxid == 0 && !n.host.IsRequest(node.Data)`,
			new:  `!n.host.IsRequest(node.Data)`,
		},
		tests: []suite{{pkg: coord, run: "TestAReleaseByTransactionIsCarriedOut"}},
	},
	{
		guard: "a release by transaction: nothing else ends the claim meanwhile",
		edit: edit{
			decl: "Hold.mayEnd",
			old:  `	case cl.deleting != nil:`,
			new:  `	case false:`,
		},
		tests: []suite{{pkg: coord, run: "TestAHoldThatATransactionIsReleasing"}},
	},
	{
		guard: "a release by transaction: a missing node is a loss",
		edit: edit{
			decl: "ExactlyOnce.releaseBy",
			old:  `return h, loss{ErrNodeDeleted}`,
			new:  `return nil, nil`,
		},
		tests: []suite{{pkg: coord, run: "TestAReleaseByTransactionOfAHoldThatWasBroken"}},
	},
	{
		guard: "a release by transaction: the own deletion of the node waits for it",
		edit: edit{
			decl: "claim.leave",
			old:  `if deleting != nil {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestTheNodeOfALostHoldStays"}},
	},
	{
		guard: "a record is written for the version that was read",
		edit: edit{
			decl: "Record.Change",
			old:  `op := SetOp(r.path, next, stat.Version)`,
			new:  `op := SetOp(r.path, next, -1)`,
		},
		tests: []suite{{pkg: coord, run: "TestChangesOfARecordByMany"}},
	},
	{
		guard: "a release by transaction: a release that is called meanwhile waits for it",
		edit: edit{
			decl: "claim.atOnce",
			old:  ` || cl.deleting != nil || cl.node.Spec.Shared`,
			new:  ` || cl.node.Spec.Shared`,
		},
		tests: []suite{{pkg: coord, run: "TestAReleaseWaitsUntilTheTransaction"}},
	},
	{
		guard: "a release by transaction: its own deletion of the node is no loss",
		edit: edit{
			decl: "claim.losing",
			old:  ` || cl.deleting != nil && errors.Is(cause, ErrNodeDeleted)`,
			new:  ` || false && errors.Is(cause, ErrNodeDeleted)`,
		},
		tests: []suite{{pkg: coord, run: "TestAReleaseByTransactionIsNoLoss"}},
	},
}
