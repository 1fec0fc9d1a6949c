package main

// once is how transactions are carried out once, and what they leave.
var once = []mutant{
	{
		guard: "exactly once: the witness's version",
		edit: edit{
			file: "coord/once.go",
			old:  `all := append([]Op{SetOp(w.path(), nil, w.version)}, ops...)`,
			new:  `all := append([]Op{SetOp(w.path(), nil, -1)}, ops...)`,
		},
		tests: []suite{{pkg: coord, run: "TestATransactionWhoseReplyIsLost"}},
	},
	{
		guard: "exactly once: a repeat that finds another version had taken effect",
		edit: edit{
			file: "coord/once.go",
			old:  `case refused != nil && lost && errors.Is(err, ErrBadVersion):`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: coord, run: "TestATransactionWhoseReplyIsLost"}},
	},
	{
		guard: "exactly once: a first attempt that finds another version had not",
		edit: edit{
			file: "coord/once.go",
			old:  `case refused != nil && lost && errors.Is(err, ErrBadVersion):`,
			new:  `case refused != nil && errors.Is(err, ErrBadVersion):`,
		},
		tests: []suite{{pkg: coord, run: "TestAWitnessDeletedByHand"}},
	},
	{
		guard: "exactly once: a repeat that finds no witness tells nothing",
		edit: edit{
			file: "coord/once.go",
			old:  `case lost:`,
			new:  `case false:`,
		},
		tests: []suite{{pkg: coord, run: "TestATransactionWhoseWitnessIsDeletedBeforeItsRepeat"}},
	},
	{
		guard: "exactly once: another session has another witness",
		edit: edit{
			file: "coord/once.go",
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
			file: "coord/once.go",
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
			file: "coord/once.go",
			old: `			if <-made == nil {
				w.drop()`,
			new: `			if <-made == nil {`,
		},
		tests: []suite{{pkg: coord, run: "TestA.*Witness"}},
	},
	{
		guard: "a release by transaction: a missing node after a lost reply is its own work",
		edit: edit{
			file: "coord/releasetxn.go",
			old: `	if lost {
		switch undone`,
			new: `	if false {
		switch undone`,
		},
		tests: []suite{{pkg: items, run: "TestLostReplies"}},
	},
	{
		guard: "a release by transaction: what it was to delete is still there",
		edit: edit{
			file: "coord/releasetxn.go",
			old:  `case !undone:`,
			new:  `case undone || true:`,
		},
		tests: []suite{{pkg: coord, run: "TestAReleaseByTransactionThatWasNeverCarriedOut"}},
	},
	{
		guard: "a release by transaction: another's node after a lost reply does not say that nothing was done",
		edit: edit{
			file: "coord/releasetxn.go",
			old: `	if lost {
		switch undone`,
			new: `	if lost && errors.Is(err, ErrNoNode) {
		switch undone`,
		},
		tests: []suite{{pkg: coord, run: "TestAReleaseByTransactionWasCarriedOut"}},
	},
	{
		guard: "a release by transaction: the own node is known again, whatever was written into it",
		edit: edit{
			file: "coord/internal/znode/node.go",
			old:  `n.czxid != 0 && node.Stat.Czxid != n.czxid || n.czxid == 0 && !n.host.IsRequest(node.Data)`,
			new:  `!n.host.IsRequest(node.Data)`,
		},
		tests: []suite{{pkg: coord, run: "TestAReleaseByTransactionIsCarriedOut"}},
	},
	{
		guard: "a release by transaction: nothing else ends the claim meanwhile",
		edit: edit{
			file: "coord/releasetxn.go",
			old:  `	case cl.deleting != nil:`,
			new:  `	case false:`,
		},
		tests: []suite{{pkg: coord, run: "TestAHoldThatATransactionIsReleasing"}},
	},
	{
		guard: "a release by transaction: a missing node at the first attempt is a loss",
		edit: edit{
			file: "coord/releasetxn.go",
			old: `	if lost {
		switch undone`,
			new: `	if true {
		switch undone`,
		},
		tests: []suite{{pkg: coord, run: "TestAReleaseByTransactionOfAHoldThatWasBroken"}},
	},
	{
		guard: "a release by transaction: the own deletion of the node waits for it",
		edit: edit{
			file: "coord/leave.go",
			old:  `if deleting != nil {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestTheNodeOfALostHoldStays"}},
	},
	{
		guard: "a release by transaction: a release that is called meanwhile waits for it",
		edit: edit{
			file: "coord/leave.go",
			old:  ` || cl.deleting != nil || cl.node.Spec.Shared`,
			new:  ` || cl.node.Spec.Shared`,
		},
		tests: []suite{{pkg: coord, run: "TestAReleaseWaitsUntilTheTransaction"}},
	},
	{
		guard: "a release by transaction: its own deletion of the node is no loss",
		edit: edit{
			file: "coord/claim.go",
			old:  ` || cl.deleting != nil && errors.Is(cause, ErrNodeDeleted)`,
			new:  ` || false && errors.Is(cause, ErrNodeDeleted)`,
		},
		tests: []suite{{pkg: coord, run: "TestAReleaseByTransactionIsNoLoss"}},
	},
}
