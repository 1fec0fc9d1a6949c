package main

// once is how transactions are carried out once, and what they leave.
var once = []mutant{
	off("exactly once: the witness's version", in(coord, "TestATransactionWhoseReplyIsLost"),
		"witness.try", `all := append([]Op{SetOp(w.path(), nil, w.version)}, ops...)`,
		`all := append([]Op{SetOp(w.path(), nil, -1)}, ops...)`),
	off("exactly once: a repeat that finds another version had taken effect", in(coord, "TestATransactionWhoseReplyIsLost"),
		"witness.try", `case refused != nil && lost && errors.Is(err, ErrBadVersion):`, `case false:`),
	off("exactly once: a first attempt that finds another version had not", in(coord, "TestAWitnessDeletedByHand"),
		"witness.try", `case refused != nil && lost && errors.Is(err, ErrBadVersion):`,
		`case refused != nil && errors.Is(err, ErrBadVersion):`),
	off("exactly once: a repeat that finds no witness tells nothing", in(coord, "TestATransactionWhoseWitnessIsDeletedBeforeItsRepeat"),
		"witness.try", `case lost:`, `case false:`),
	off("exactly once: another session has another witness", in(coord, "TestAWitnessDeletedByHand"),
		"ExactlyOnce.takeIn", `	o.idle = slices.DeleteFunc(o.idle, func(w *witness) bool { return w.sess.Err() != nil })
	for i, w := range slices.Backward(o.idle) {
		if w.sess == s {`,
		`	for i, w := range slices.Backward(o.idle) {
		if true {`),
	off("exactly once: a witness that is of no more use is deleted", in(coord, "TestATransactionLeftInItsMiddle"),
		"ExactlyOnce.txn", `			w.drop()
		}
		if`,
		`		}
		if`),
	off("exactly once: a witness given up while it is made is deleted after its create", in(coord, "TestA.*Witness"),
		"ExactlyOnce.make", `			if <-made == nil {
				w.drop()`,
		`			if <-made == nil {`),
	off("a release by transaction: the own node is known again, whatever was written into it",
		in(coord, "TestAReleaseByTransactionIsCarriedOut"),
		"Node.Rewritten", `n.czxid != 0 && node.Stat.Czxid != n.czxid || n.czxid == 0 && !n.host.IsRequest(node.Data)`,
		`!n.host.IsRequest(node.Data)`),
	off("a release by transaction: nothing else ends the claim meanwhile", in(coord, "TestAHoldThatATransactionIsReleasing"),
		"Hold.mayEnd", `	case cl.deleting != nil:`, `	case false:`),
	off("a release by transaction: a missing node is a loss", in(coord, "TestAReleaseByTransactionOfAHoldThatWasBroken"),
		"ExactlyOnce.releaseBy", `return h, loss{ErrNodeDeleted}`, `return nil, nil`),
	off("a release by transaction: the own deletion of the node waits for it", in(coord, "TestTheNodeOfALostHoldStays"),
		"claim.leave", `if deleting != nil {`, `if false {`),
	off("a record is written for the version that was read", in(coord, "TestChangesOfARecordByMany"),
		"Record.Change", `op := SetOp(r.path, next, stat.Version)`, `op := SetOp(r.path, next, -1)`),
	off("a release by transaction: a release that is called meanwhile waits for it", in(coord, "TestAReleaseWaitsUntilTheTransaction"),
		"claim.atOnce", ` || cl.deleting != nil || cl.node.Spec.Shared`, ` || cl.node.Spec.Shared`),
	off("a release by transaction: its own deletion of the node is no loss", in(coord, "TestAReleaseByTransactionIsNoLoss"),
		"claim.losing", ` || cl.deleting != nil && errors.Is(cause, ErrNodeDeleted)`, ` || false && errors.Is(cause, ErrNodeDeleted)`),
}
