package main

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
}
