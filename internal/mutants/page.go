package main

// pages is who may use the command's page, and what it costs the servers.
var pages = []mutant{
	{
		guard: "the page goes by no name that others choose",
		edit: edit{
			file: "cmd/internal/ui/door.go",
			old:  `	case !d.knows(r.Host):`,
			new:  `	case false:`,
		},
		tests: []suite{{pkg: page, run: "TestThePageGoesByNoNameThatOthersChoose"}},
	},
	{
		guard: "the page opens by its token",
		edit: edit{
			file: "cmd/internal/ui/door.go",
			old:  `!= 1:`,
			new:  `> 1:`,
		},
		tests: []suite{{pkg: page, run: "TestOnlyTheURLWithTheTokenOpensThePage"}},
	},
	{
		guard: "the page of another origin does not act",
		edit: edit{
			file: "cmd/internal/ui/door.go",
			old:  `r.Header.Get("Origin") == "http://"+r.Host`,
			new:  `r.Header.Get("Origin") != ""`,
		},
		tests: []suite{{pkg: page, run: "TestOnlyThePageItselfMayAct"}},
	},
	{
		guard: "a form does not act",
		edit: edit{
			file: "cmd/internal/ui/door.go",
			old:  `kind == "application/json"`,
			new:  `kind != ""`,
		},
		tests: []suite{{pkg: page, run: "TestOnlyThePageItselfMayAct"}},
	},
	{
		guard: "viewers share a survey, and the next waits",
		edit: edit{
			file: "cmd/internal/ui/looker.go",
			old:  `time.Now().Before(l.next)`,
			new:  `false`,
		},
		tests: []suite{{pkg: page, run: "TestViewersShareOneLookAtATimeWhileOneAsks"}},
	},
	{
		guard: "the page acts on the session that it has shown",
		edit: edit{
			file: "cmd/internal/cli/ui_sight.go",
			old:  `if there && sessionName(stat.Owner) != target.Session {`,
			new:  `if there && stat.Owner == 0 {`,
		},
		tests: []suite{{pkg: verbs, run: "TestThePageLeavesAnItemThatHasChangedHands"}},
	},
}
