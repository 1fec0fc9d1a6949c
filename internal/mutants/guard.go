package main

// guards is how coorddemo's commands are stopped in time.
var guards = []mutant{
	off("what was told to end was interrupted, whatever comes afterwards", in(keeper, "TestACommandThatWasToldToEndIsInterrupted"),
		"keeper.obey", `k.deadline = o.Deadline`, `k.deadline, k.cause, k.killAt = o.Deadline, ByItself, 0`),
	off("what does not heed TERM is killed though the deadline moves", in(keeper, "TestTermComesBeforeTheDeadlineAndKillAtIt"),
		"keeper.obey", `k.deadline = o.Deadline`, `k.deadline, k.killAt = o.Deadline, 0`),
	off("orphans of a killed guard are killed before the owner is told", in(keeper, "TestWhenTheGuardIsKilledAllIsDead"),
		"reaper", `	for !s.over() {`, `	for false {`),
	off("reports do not block", in(keeper, "TestTheGuardKeepsTheDeadlineAlsoWhenItsReports"),
		"outbox.report", `	default:
		return false
	}`,
		`	}`),
	off("the command's arguments are bytes", in(runs, "TestTheCommandsNameAndArgumentsAreBytes"),
		"keeper.start", `string(k.setup.Argv)`, `string([]rune(string(k.setup.Argv)))`),
	off("what a frozen guard does not kill is killed above it", in(keeper, "TestWhenTheGuardIsFrozenAbandonKillsAll"),
		"reaper", `waiting = false`, `return nil`),
	off("a frozen guard is left to kill by itself", in(keeper, "TestAFrozenGuardKillsTheCommandWhenItGoesOn"),
		"reaper", `waiting = status.Stopped()`, `waiting = false`),
	off("a guard whose reaper was killed ends the command", in(keeper, "TestWhenTheReaperIsKilledTheGuardEndsTheCommand"),
		"keeper.act", `case os.Getppid() != k.parent:`, `case false:`),
	off("an owner without a report of the end is not sure of it", in(keeper, "TestWhenGuardAndReaperAreKilledTheOwnerIsNotSure"),
		"Process.read", `Cause: ByKill, Unsure: true}`, `Cause: ByKill}`),
	off("while something of a command may be running nothing is released", in(runs, "TestWhenAllThatGuardsIsKilledNothingIsReleased"),
		"run.loss", `r.left = true`, `r.left = false`),
	off("a note that is not read ends no process", in(runs, "TestANoteThatIsNotReadDoesNotEndTheProcess"),
		"forward", `signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)`, ""),
	off("no process waits for the reader of a note", in(runs, "TestNothingWaitsForANoteThatIsStuck"),
		"Notes.add", `if len(n.pending) < most {`, `if _, _ = n.File.Write(p); false {`),
	off("a process without its first thread is reached", in(keeper, "TestAProcessWithoutItsFirstThread"),
		"processOf", `'X' || threads}`, `'X' || threads && false}`),
	off("a zombie in the command's group keeps no lock", in(runs, "TestAZombieInTheCommandsGroup"),
		"sweep.round", ` && !reachesAll {`, ` {`),
	off("the children of a process without its first thread are reached", in(keeper, "TestAProcessWithoutItsFirstThread"),
		"processOf", `if len(fields) < 2 {`, `if len(fields) < 2 || fields[0][0] == 'Z' {`),
}

// pages is who may use the command's page, and what it costs the servers.
var pages = []mutant{
	off("the page goes by no name that others choose", in(page, "TestThePageGoesByNoNameThatOthersChoose"),
		"door.ServeHTTP", `	case !d.knows(r.Host):`, `	case false:`),
	off("the page opens by its token", in(page, "TestOnlyTheURLWithTheTokenOpensThePage"),
		"door.ServeHTTP", `!= 1:`, `> 1:`),
	off("the page of another origin does not act", in(page, "TestOnlyThePageItselfMayAct"),
		"isOwn", `r.Header.Get("Origin") == "http://"+r.Host`, `r.Header.Get("Origin") != ""`),
	off("a form does not act", in(page, "TestOnlyThePageItselfMayAct"),
		"isOwn", `kind == "application/json"`, `kind != ""`),
	off("viewers share a survey, and the next waits", in(page, "TestViewersShareOneLookAtATimeWhileOneAsks"),
		"looker.start", `time.Now().Before(l.next)`, `false`),
	off("the page acts on the session that it has shown", in(shown, "TestThePageLeavesAnItemThatHasChangedHands"),
		"UIVerb.act", `if there && look.SessionName(stat.Owner) != target.Session {`, `if there && stat.Owner == 0 {`),
	off("guard: a signal that comes before the command reaches it", in(keeper, "TestASignalThatComesBefore"),
		"keeper.timely", `early = append(early, o.Signal)`, `_ = o`),
}
