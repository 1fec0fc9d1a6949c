package main

// jobs is which jobs are done once, and which records of them are kept.
var jobs = []mutant{
	off("job: one that was done is not begun again", in(ledger, "TestAJobThatWasDone"),
		"job.verdict", `case r.State == Done:`, `case false:`),
	off("job: the holder of the lock looks at the record", in(ledger, "TestWhoIsGrantedTheLock"),
		"Run.begin", `if over, err := r.job.verdict(found); over {`, `if over, err := r.job.verdict(found); over && false {`),
	off("job: only the holder of the lock puts an end on record", in(ledger, "TestTheEndOfAJobThatAnotherHas"),
		"Run.end", `	return own, r.job.guard.Release(ctx, []*coord.Hold{r.Hold}, coord.SetOp(r.job.record(), own.encode(own.data), r.version))`,
		`	_, err := r.job.guard.Txn(ctx, coord.SetOp(r.job.record(), own.encode(own.data), -1))
	r.Abandon()
	return own, err`),
	off("job: a beginning whose reply was lost is found", in(ledger, "TestAJobWhoseReplies"),
		"Run.begin", `if found.ID != id {`, `if true {`),
	off("job: a run that began counts, however it ends", in(ledger, "TestAfterACrash"),
		"Run.next", `if found.State == Running && r.job.attempts > 0`, `if false`),
	off("job: all who wait hear of the end", in(ledger, "TestAllWhoWait"),
		"job.acquire", `			stop(errOver)`, ""),
	off("job: a wait leaves no watch on a record that stays", in(ledger, "TestAWaitLeavesNoWatch"),
		"job.isOver", `		found, stat, err := j.read(ctx, j.place)`,
		`		_, _, _ = recipe.NewRecord(j.client, j.record()).Look(v, nil)
		found, stat, err := j.read(ctx, j.place)`),
	off("job: attempts are their time apart", in(ledger, "TestAttemptsAreTheirTimeApart"),
		"Run.pause", `if found.State != Failed || r.job.backoff == 0 {`, `if true {`),
	off("job: a try does not wait for the time of the next attempt", in(ledger, "TestAttemptsAreTheirTimeApart"),
		"Run.pause", `case r.job.try:`, `case false:`),
	off("job: a panic releases the lock", in(ledger, "TestAPanic"),
		"Run.perform", `	defer r.Abandon() // after a panic; otherwise nothing is left to release`, ""),
	off("job: a result that does not fit is a failure", in(ledger, "TestResultsThatDoNotFit"),
		"Run.End", `if errors.Is(err, coord.ErrTooLarge) && failure == nil {`, `if false {`),
	off("job: the record of a job that runs is kept", in(ledger, "TestTheRecordOfAJobThatRuns"),
		"Once.settle", `case !busy && (tooMany ||`, `case (tooMany ||`),
	off("job: the earlier runs of a job that runs need not be put off", in(ledger, "TestEarlierRuns"),
		"Once.settle", `case stat.Czxid != 0 && r.ID != j.run:`, `case !busy && stat.Czxid != 0 && r.ID != j.run:`),
	off("job: a job that runs on takes the place of no newer run", in(ledger, "TestEarlierRuns"),
		"Once.prune", `		total--
`, `		if !moved {
			total--
		}
`),
	off("job: an entry that was put off is not one of the newest", in(ledger, "TestEarlierRuns"),
		"Once.settle", `coord.AppendOp(late.dir+"/"`, `coord.AppendOp(j.dir+"/"`),
	off("job: an entry that was put off is looked at again", in(ledger, "TestEarlierRuns"),
		"Once.prune", `!due(j, tooMany) || looked > 0 && more > 0`, `true`),
	off("job: an entry of an earlier run deletes no record", in(ledger, "TestTheNewestRuns"),
		"Once.settle", `case stat.Czxid != 0 && r.ID != j.run:`, `case stat.Czxid != 0 && r.ID == "":`),
	off("job: the oldest of all runs goes first", in(ledger, "TestTheNewestRuns"),
		"oldest", `cmp.Compare(a.stat.Czxid, b.stat.Czxid)`, `0 * cmp.Compare(a.stat.Czxid, b.stat.Czxid)`),
	off("job: a record is as old as the end of its run", in(ledger, "TestOldRecords"),
		"Once.settle", `case !busy && (tooMany || time.Since(stat.Modified) > o.keep):`, `case !busy:`),
	off("job: a bounded number of records is deleted at a time", in(ledger, "TestOldRecords"),
		"Once.prune", `for range atOnce {`, `for {`),
	off("job: a log without its directory gets one", in(ledger, "TestALogGoesOn"),
		"Run.write", `case !errors.Is(err, coord.ErrNoNode):`, `case true:`),
	off("job: a slot of gocron's is the same for all who come near it", in(gocron, "TestASlot"),
		"Locker.Lock", `l.Now().Round(l.every)`, `l.Now()`),
	off("job: gocron's jobs do not run after the leader's term", in(gocron, "TestTheNextLeader"),
		"Elector.Term", `t != nil && t.Err() == nil`, `t != nil`),
	off("job: a slot of a crontab is the same for all who come near it", in(crontab, "TestASlot"),
		"Once", `time.Now().Round(every)`, `time.Now()`),
}
