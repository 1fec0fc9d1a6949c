package main

// holds is how a hold hears of its end.
var holds = []mutant{
	off("a hold watches its own node", in(coord, "TestAHoldWhoseNodeIsDeletedByHand"),
		"claim.hasJoined", `	cl.node.WatchSoon()`, ""),
	off("a waiter watches its own node", in(coord, "TestAWaiterWhoseNodeIsDeletedByHand"),
		"claim.hasJoined", `	cl.node.WatchSoon()`, ""),
	off("a waiter that is far from its turn watches its own node, too", in(coord, "TestAWaiterWhoseNodeIsDeletedByHand"),
		"watchDelay", `watchLater = 250 * time.Millisecond`, `watchLater = time.Hour`),
	off("a node that was seen again is watched soon", in(znodes, "TestANodeThatNearsItsTurn"),
		"Node.Seen", `n.WatchSooner()`, ""),
	off("nodes that have gone before their first watch are not kept", in(coord, "TestF77"),
		"firsts.drop", `f.tidy()`, ""),
	off("a node that is watched soon does not wait for those that are watched later", in(znodes, "TestEachNodeGets"),
		"firsts.wakeAt", `f.next != 0 && f.next <= due`, `f.next != 0`),
	off("a waiter whose node is gone is woken", in(coord, "TestAWaiterWhoseNodeIsDeletedByHand"),
		"claim.beginRemoval", `cl.waker.Wake()`, ""),
	off("a window found closed ends no hold that is granted since", in(coord, "TestAHoldGrantedSinceTheWindow"),
		"claim.losing", `time.Now().Before(cl.sess.Deadline())`, `false`),
	off("the end of the session ends claims", in(coord, "TestAHoldIsLostWithItsSession"),
		"options.lossBy", `case change == session.Over:`, `case false:`),
	off("a transaction of a hold checks the hold's node", in(coord, "TestATxnOfALostHoldWritesNothing"),
		"Hold.txn", `CheckOp(cl.path(), cl.node.Version())`, `CheckOp("/", -1)`),
	off("a transaction of a name makes its checks", in(coord, "TestATransactionOfANameThatAnotherHas"),
		"Hold.txn", `, cl.proof()...)`, `)`),
	off("a name whose proof is gone is released", in(coord, "TestANameWhoseProofIsGone"),
		"Hold.ownFailure", `single.Index == 0)`, `true)`),
	off("a sequential node is made within the chroot", in(coord, "TestASequentialNodeBelow"),
		"Client.requests", `full[:len(full)-len(path)+len(op.path)]`, `c.full(op.path) + full[:0]`),
	off("a hold's own watch sees whose the node is", in(coord, "TestAHoldWhoseNameIsAnothers"),
		"Node.checkRead", `case w.Stat.Owner != n.sess.ID() || n.czxid != 0 && n.czxid != w.Stat.Czxid:`, `case false:`),
	off("a hold's own watch tells its node from another of its client", in(coord, "TestAHoldWhoseNameIsAnotherClaims"),
		"Node.checkRead", ` || n.czxid != 0 && n.czxid != w.Stat.Czxid`, ""),
	off("a release with the hold's own context ends with what that was made from",
		in(coord, "TestAReleaseEndsWithAContext"),
		"removal.wait", `outer = held.parent`, ""),
	off("a release with a context made from the hold's own ends by its deadline",
		in(coord, "TestAReleaseInTheContextOfItsHold"),
		"removal.wait", `ctx.Deadline(); ok {`, `ctx.Deadline(); ok && false {`),
	off("with LoseAtDisconnect a hold ends with its connection", in(coord, "TestWithLoseAtDisconnectAHold"),
		"options.lossBy", `case change == session.Down && o.dropping:`, `case false:`),
	off("with LoseAtDisconnect nothing is granted without a connection", in(coord, "TestWithLoseAtDisconnectNothing"),
		"Hold.causeOfLoss", `case cl.client.opts.dropping && !cl.sess.Connected():`, `case false:`),
	off("holds end before the client closes its session", in(coord, "TestAHoldHasEndedWhenTheServerHears"),
		"Keeper.run", `		k.cfg.Notify(Over, s)
		if k.stop.Err() != nil {
			s.closeInOrder()
		}`,
		`		if k.stop.Err() != nil {
			s.closeInOrder()
		}
		k.cfg.Notify(Over, s)`),
	off("a release whose deletion fails at once is repeated", in(coord, "TestAServerThatStumblesOverTheDeletion"),
		"claim.atOnce", `if err == nil || cl.sess.Go(remove) != nil {`, `if true {`),
	off("a release tells another's node of the same name from its own", in(coord, "TestAReleaseLeavesTheNodeAlone"),
		"claim.atOnce", `cl.node.Path(), cl.node.Version(), func`, `cl.node.Path(), -1, func`),
	off("a node is deleted with the last of its handles", in(coord, "TestNestedHandles"),
		"Hold.giveUp", `	if !last {`, `	if !last && false {`),
	off("a claim says under which holds its process runs", in(shown, "TestADeadlockOfCommands"),
		"Client.dataWithin", `c.opts.held, `, ""),
	off("a claim says which holds its context carries", in(shown, "TestADeadlockWithinOneProgram"),
		"Client.dataWithin", `, heldNodes(ctx)`, ""),
}

// leaving is how the rounds of a double barrier end.
var leaving = []mutant{
	off("double barrier: no member is done before it says so", in(barrier, "TestAMemberThatDiesBeforeItHasFinished"),
		"leaver.awaitOthers", `case err != nil || !other.finished:`, `case err != nil || !other.finished && false:`),
	off("double barrier: the next monitor takes over", in(barrier, "TestTheNextMemberCloses"),
		"leaver.awaitBefore", `_, _, err := v.Children(l.node(l.before))`,
		`_, err := l.barrier.client.Children(context.Background(), l.node(l.before))`),
	off("double barrier: a leaver that did not hear of the end at once looks around",
		in(barrier, "TestTheNextMemberCloses"),
		"leaver.look", `v.RecheckAt(l.graceOver)`, ""),
	off("double barrier: a leaver that is slow to look sees that the round is over", in(barrier, "TestALeaverThatIsSlow"),
		"leaver.awaitBefore", `v.RecheckNow()`, `if l.before >= 0 { return l.awaitBefore(v) }`),
	off("double barrier: a leaver watches ready before it marks itself", in(barrier, "TestALeaverWatchesReady"),
		"leaver.look", `	if over, err := l.refresh(ctx, v); over || err != nil {`,
		`	if l.graceOver.IsZero() {
		if err := l.finish(ctx); err != nil {
			return false, err
		}
		l.graceOver = time.Now().Add(leaveGrace)
	}
	if over, err := l.refresh(ctx, v); over || err != nil {`),
	off("double barrier: a leaver looks for the end before it watches again", in(barrier, "TestALeaverThatLearns"),
		"leaver.refresh", `if over, err := l.ended(ready.get(ctx)); over || err != nil {`, `if false {`),
	off("double barrier: Leave ends with the membership", in(barrier, "TestLeaveEnds"),
		"Member.leave", `inside := m.hold.Context(ctx)`, `inside := ctx`),
	off("double barrier: another number of members does not end a crashed round well", in(barrier, "TestAnotherNumber"),
		"state.resized", `		s = s.closing(missing, nil)`, `		s = s.closing(nil, nil)`),
	off("double barrier: a member that died unfinished is missing", in(barrier, "TestAMemberThatDiesBeforeItHasFinished"),
		"leaver.awaitOthers", `			l.missing = append(l.missing, l.next)`, ""),
	off("double barrier: a member that has finished keeps its mark", in(barrier, "TestAMemberThatIsAskedToGiveUpIsStill"),
		"leaver.look", `case !parse(data).finished: // another`, `case !parse(data).finished && false: // another`),
	off("double barrier: ready is the one that the member entered by", in(barrier, "TestInsideTheDeletionOfReady"),
		"leaver.ended", `case r.stat.Czxid != l.open.stat.Czxid:`, `case false:`),
	off("what is too large to go along does not keep the node", in(coord, "TestWhatIsTooLargeToGoAlong"),
		"removal.removeWith", ` || errors.Is(err, ErrTooLarge)`, ``),
	off("a hold is forfeited for the end of another", in(coord, "TestWhatGoesAlong"),
		"claim.losing", `cause == ErrWindowOver`, `errors.Is(cause, ErrWindowOver)`),
	off("an operation that is refused is not taken for the name", in(coord, "TestANameThatAFormerSession"),
		"Client.acquire", `err == ErrNodeExists`, `errors.Is(err, ErrNodeExists)`),
}
