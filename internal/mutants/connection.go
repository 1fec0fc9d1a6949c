package main

// connection is what lies between the client library and a server.
var connection = []mutant{
	{
		guard: "one connection object for one session",
		edit: edit{
			file: "coord/internal/session/session.go",
			old:  `case id != known:`,
			new:  `case id != known && id == 0:`,
		},
		tests: []suite{{pkg: coord, run: "TestAHoldIsLostWhenItsServerBegins"}},
	},
	{
		guard: "a throttled request is repeated",
		edit: edit{
			file: "coord/internal/session/errors.go",
			old:  `"unknown error: -127": ErrThrottled,`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestWhateverTheServerThrottles"}},
	},
	{
		guard: "oversized data are not sent",
		edit: edit{
			file: "coord/connectstring.go",
			old:  `if len(data) > maxData {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestAClaimWithTooMuchData"}},
	},
	{
		guard: "the client library never sees a write error",
		edit: edit{
			file: "coord/internal/session/wire.go",
			old: `		_ = w.Conn.Close()
	} else if ok {`,
			new: `		return 0, err
	} else if ok {`,
		},
		tests: []suite{{pkg: coord, run: "TestAnErrorInWritingTheCredentials"}},
	},
	{
		guard: "a server that does not answer a handshake is given up",
		edit: edit{
			file: "coord/internal/session/wire.go",
			old:  `nearest(w.greeted.Add(w.limit))`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestAServerThatDoesNotAnswerTheHandshake"}},
	},
	{
		guard: "calls end with their contexts",
		edit: edit{
			file: "coord/internal/session/ops.go",
			old: `	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return zero, Ended(ctx)
	}`,
			new: `	case r := <-done:
		return r.value, r.err
	}`,
		},
		tests: []suite{{pkg: gate, run: "TestEveryCallEndsWithItsContext"}},
	},
	{
		guard: "a reply that says that the session has expired ends it",
		edit: edit{
			file: "coord/internal/session/session.go",
			old:  `if code == codeExpired {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestAServerThatSaysThatTheSessionHasExpired"}},
	},
	{
		guard: "a server that does not answer a request is given up after T/2",
		edit: edit{
			file: "coord/internal/session/wire.go",
			old:  `nearest(from.Add(w.stall))`,
			new:  `_ = from`,
		},
		tests: []suite{{pkg: coord, run: "TestAServerThatHangs"}},
	},
}
