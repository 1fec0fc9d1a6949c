package main

// leaving is how the rounds of a double barrier end.
var leaving = []mutant{
	off("double barrier: no member is done before it says so", in(barrier, "TestNoMemberLeavesBeforeTheLastIsDone"),
		"leaver.awaitOthers", `case err != nil || !hasFinished(data):`, `case err != nil || !hasFinished(data) && false:`),
	off("double barrier: the next monitor takes over", in(barrier, "TestTheNextMemberCloses"),
		"leaver.awaitBefore", `_, _, err := v.Children(l.node(l.before))`,
		`_, err := l.barrier.client.Children(context.Background(), l.node(l.before))`),
	off("double barrier: a leaver that did not hear of the end at once looks around", in(barrier, "TestTheNextMemberCloses"),
		"leaver.look", `v.At(l.hurry)`, ""),
	off("double barrier: a leaver that is slow to look sees that the round is over", in(barrier, "TestALeaverThatIsSlow"),
		"leaver.awaitBefore", `		v.At(time.Now())
		return nil`,
		`		if l.before >= 0 {
			return l.awaitBefore(v)
		}
		return nil`),
	off("double barrier: Leave ends with the membership", in(barrier, "TestLeaveEnds"),
		"Member.leave", `inside := m.hold.Context(ctx)`, `inside := ctx`),
	off("double barrier: another number of members does not end a crashed round well", in(barrier, "TestAnotherNumber"),
		"state.resized", `		s = s.closing(missing)`, `		s = s.closing(nil)`),
	off("double barrier: a member that died unfinished is missing", in(barrier, "TestAMemberThatDiesBeforeItHasFinished"),
		"leaver.awaitOthers", `			l.missing = append(l.missing, l.next)`, ""),
	off("double barrier: a member that has finished keeps its mark", in(barrier, "TestAMemberThatHasFinishedIsSeenTo"),
		"leaver.look", `case !hasFinished(data): // another`, `case !hasFinished(data) && false: // another`),
	off("double barrier: ready is the one that the member entered by", in(barrier, "TestInsideTheDeletionOfReady"),
		"leaver.ended", `case r.stat.Czxid != l.open.stat.Czxid:`, `case false:`),
}
