package main

// pages is who may use the command's page, and what it costs the servers.
var pages = []mutant{
	{
		guard: "the page goes by no name that others choose",
		edit: edit{
			decl: "door.ServeHTTP",
			old:  `	case !d.knows(r.Host):`,
			new:  `	case false:`,
		},
		tests: []suite{{pkg: page, run: "TestThePageGoesByNoNameThatOthersChoose"}},
	},
	{
		guard: "the page opens by its token",
		edit: edit{
			decl: "door.ServeHTTP",
			old:  `!= 1:`,
			new:  `> 1:`,
		},
		tests: []suite{{pkg: page, run: "TestOnlyTheURLWithTheTokenOpensThePage"}},
	},
	{
		guard: "the page of another origin does not act",
		edit: edit{
			decl: "isOwn",
			old:  `r.Header.Get("Origin") == "http://"+r.Host`,
			new:  `r.Header.Get("Origin") != ""`,
		},
		tests: []suite{{pkg: page, run: "TestOnlyThePageItselfMayAct"}},
	},
	{
		guard: "a form does not act",
		edit: edit{
			decl: "isOwn",
			old:  `kind == "application/json"`,
			new:  `kind != ""`,
		},
		tests: []suite{{pkg: page, run: "TestOnlyThePageItselfMayAct"}},
	},
	{
		guard: "viewers share a survey, and the next waits",
		edit: edit{
			decl: "looker.start",
			old:  `time.Now().Before(l.next)`,
			new:  `false`,
		},
		tests: []suite{{pkg: page, run: "TestViewersShareOneLookAtATimeWhileOneAsks"}},
	},
	{
		guard: "the page acts on the session that it has shown",
		edit: edit{
			decl: "UIVerb.act",
			old:  `if there && look.SessionName(stat.Owner) != target.Session {`,
			new:  `if there && stat.Owner == 0 {`,
		},
		tests: []suite{{pkg: shown, run: "TestThePageLeavesAnItemThatHasChangedHands"}},
	},
}
