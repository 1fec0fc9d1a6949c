package main

// slots is who has which number.
var slots = []mutant{
	off("slot: a number that was read as free is claimed as it was read", in(numbers, "TestAnOwnerIsGiven|TestTheCooldown|TestAnOwnerThatReturns|TestTwoOfOneName|TestNobodyIsGiven"),
		"attempt.claim", `with := []coord.Op{coord.SetOp(number, data, a.chosen.version)}`, `with := []coord.Op{coord.SetOp(number, data, -1)}`),
	off("slot: a late deletion does not take the number from the next", in(numbers, "TestALateDeletion"),
		"attempt.claim", `Proof: []coord.Op{coord.CheckOp(number, a.chosen.version+1)},`, ``),
	off("slot: two goroutines of a client do not take each other's node for their own", in(numbers, "TestAClientDoesNotTake"),
		"attempt.data", `a.client.Info().Identity + "\n" + rand.Text()`, `a.client.Info().Identity + "\n" + rand.Text()[:0]`),
	off("slot: another owner's number is left alone", in(numbers, "TestAnOwnerIsGiven"),
		"attempt.free", `if now.Owner == "" {`, `if true {`),
	off("slot: a cooldown is waited for", in(numbers, "TestAnother|TestTheCooldown"),
		"attempt.free", `if left := first.due().Sub(clock); left > 0 {`, `if left := first.due().Sub(clock); left > 1<<62 {`),
	off("slot: whose cooldown is over first goes first", in(numbers, "TestTheOwnerThatIsAway"),
		"attempt.free", `slices.MinFunc(owned, later)`, `slices.MinFunc(owned[:1], later)`),
	off("slot: an owner is away from the first look on", in(numbers, "TestTheCooldown"),
		"attempt.mark", `return a.write(ctx, *now, entry{now.Owner, now.Cooldown, true})`, `return nil`),
	off("slot: the first in line keeps its place over a lost reply", in(numbers, "TestTheFirstInLineKeeps"),
		"attempt.mark", `err := recipe.Retry(ctx, a.Slots.client, func(ctx context.Context) error { return a.write(ctx, *now, entry{now.Owner, now.Cooldown, true}) })`,
		`err := a.write(ctx, *now, entry{now.Owner, now.Cooldown, true})`),
	off("slot: an owner that has returned is not away", in(numbers, "TestAnOwnerThatReturns"),
		"Slots.write", `coord.EphemeralOp(hold, nil), coord.DeleteOp(hold, 0),`, `coord.CheckOp(hold[:0]+s.nodes.Numbers(), -1),`).
		and("Slots.write", `e.encode(), now.version))`, `e.encode(), -1))`),
	off("slot: an owner has one number", in(numbers, "TestTwoOfOneName|TestAnOwnerWaits"),
		"attempt.own", `if now.Owner == a.owner {`, `if now.Owner == a.owner && a.place == nil {`),
	off("slot: who waits for its own number keeps nobody waiting", in(numbers, "TestTwoOfOneName"),
		"attempt.choose", `			a.leave()`, ""),
	off("slot: an owner without a number queues", in(numbers, "TestTwoTries"),
		"attempt.choose", `if a.place == nil && a.owner != "" {`, `if a.place == nil && a.owner != "" && !a.try {`),
	off("slot: a place in the line that is lost is noticed", in(numbers, "TestAPlaceInTheLine"),
		"attempt.choose", `v.RecheckOn(a.place.Done())`, `_ = v`).
		and("Slots.acquire", `case !errors.Is(err, coord.ErrLost):`, `default:`),
	off("slot: the number of a holder is not forgotten", in(numbers, "TestAnOwnerIsForgotten"),
		"Slots.forget", `if errors.Is(err, coord.ErrNodeExists) {`, `if false {`),
	off("an owner is looked for in the latest state before it is called forgotten", in(numbers, "TestAnOwnerIsForgottenThough"),
		"Slots.forget", `s.client.Synced()`, `s.client`),
}
