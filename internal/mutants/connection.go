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
		guard: "a packet that servers close on is given up",
		edit: edit{
			file: "coord/internal/session/packets.go",
			old:  `p.closed >= closings && time`,
			new:  `p.closed >= 100 && time`,
		},
		tests: []suite{{pkg: coord, run: "TestAPacketThatServersCloseOn"}},
	},
	{
		guard: "packets that servers may close on are sent one at a time",
		edit: edit{
			file: "coord/internal/session/packets.go",
			old:  `done = func() { <-p.alone }`,
			new:  `<-p.alone; done = func() {}`,
		},
		tests: []suite{{pkg: inside, run: "TestPacketsThatServersMayCloseOn"}},
	},
	{
		guard: "an answer to a large packet clears those of its size",
		edit: edit{
			file: "coord/internal/session/packets.go",
			old:  `p.suspect, p.closed = 0, 0`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestAConnectionThatIsCutUnderALargePacket"}},
	},
	{
		guard: "a session that was given up is closed where servers still have it",
		edit: edit{
			file: "coord/internal/session/former.go",
			old:  `!errors.Is(s.Err(), errGivenUp) || len`,
			new:  `true || len`,
		},
		tests: []suite{{pkg: coord, run: "TestASessionThatWasGivenUp"}},
	},
	{
		guard: "a server that closes on containers gets persistent nodes",
		edit: edit{
			file: "coord/internal/session/packets.go",
			old:  `return p.containers < 2`,
			new:  `return true`,
		},
		tests: []suite{{pkg: coord, run: "TestAServerThatClosesTheConnectionOnAContainer"}},
	},
	{
		guard: "queue: an item whose claim is too large with the data is claimed without",
		edit: edit{
			file: "coord/queue/claim.go",
			old:  `if errors.Is(err, coord.ErrTooLarge) { // with the data`,
			new:  `if false { // with the data`,
		},
		tests: []suite{{pkg: coord, run: "TestAnItemThatFitsWhereItsClaim"}},
	},
	{
		guard: "the client library never sees a write error",
		edit: edit{
			file: "coord/internal/session/wire.go",
			old:  `return len(p), nil`,
			new:  `return len(p), w.broken`,
		},
		tests: []suite{{pkg: inside, run: "TestAWriteErrorIsNeverShown"}},
	},
	{
		guard: "a connection that cannot be written on is ended",
		edit: edit{
			file: "coord/internal/session/wire.go",
			old: `			_ = w.Conn.Close()
			return`,
			new: `			return`,
		},
		tests: []suite{{pkg: coord, run: "TestAnErrorInWritingTheCredentials"}},
	},
	{
		guard: "a session is not continued on a server that lags behind what it knows of",
		edit: edit{
			file: "coord/internal/session/dial.go",
			old:  `w.seen = s.seen`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestASessionTellsTheNextServer"}},
	},
	{
		guard: "what was asked on a connection that is lost is answered",
		edit: edit{
			file: "coord/internal/session/wire.go",
			old:  `r.tell(answer{err: ErrConnection})`,
			new:  ``,
		},
		tests: []suite{{pkg: inside, run: "TestWhatIsAskedTogether"}},
	},
	{
		guard: "what takes long to write, but goes on, is no sign of a hung server",
		edit: edit{
			file: "coord/internal/session/wire.go",
			old:  `slices.Chunk(packets, most)`,
			new:  `slices.Chunk(packets, len(packets))`,
		},
		tests: []suite{{pkg: inside, run: "TestMuchThatIsAskedTogether"}},
	},
	{
		guard: "a packet that a server closed on is known also when it was being written",
		edit: edit{
			file: "coord/internal/session/wire.go",
			old:  `if !errors.Is(err, net.ErrClosed) { //`,
			new:  `if true || errors.Is(err, net.ErrClosed) { //`,
		},
		tests: []suite{{pkg: inside, run: "TestAPacketThatAServerClosedOnIsKnown"}},
	},
	{
		guard: "the client library takes back no deadline of what is asked past it",
		edit: edit{
			file: "coord/internal/session/wire.go",
			old:  `SetWriteDeadline(time.Time) error { return nil }`,
			new:  `SetWriteDeadline(t time.Time) error { return w.Conn.SetWriteDeadline(t) }`,
		},
		tests: []suite{{pkg: inside, run: "TestAServerThatTakesNothing"}},
	},
	{
		guard: "a busy server can hold back the session's own requests: their numbers are above 0",
		edit: edit{
			file: "coord/internal/session/frame.go",
			old:  `xidOwn          = 1 << 30`,
			new:  `xidOwn          = -1 << 30`,
		},
		tests: []suite{{pkg: inside, run: "TestWhatIsAskedTogether"}},
	},
	{
		guard: "requests of the session's own end with their contexts",
		edit: edit{
			file: "coord/internal/session/ask.go",
			old: `	case <-ctx.Done():
		return zero, Ended(ctx)
	}`,
			new: `	}`,
		},
		tests: []suite{{pkg: coord, run: "TestAReadEndsWithItsContext"}},
	},
	{
		guard: "a server that does not answer a handshake is given up",
		edit: edit{
			file: "coord/internal/session/wire.go",
			old:  `at = w.greeted.Add(w.limit)`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestAServerThatDoesNotAnswerTheHandshake"}},
	},
	{
		guard: "calls through the client library end with their contexts",
		edit: edit{
			file: "coord/internal/session/ops.go",
			old: `		return r.value, r.err
	case <-ctx.Done():
		return zero, Ended(ctx)
	}`,
			new: `		return r.value, r.err
	}`,
		},
		tests: []suite{{pkg: coord, run: "TestATransactionEndsWithItsContext"}},
	},
	{
		guard: "an attempt to connect that takes long goes on beside the others",
		edit: edit{
			file: "coord/internal/session/config.go",
			old:  `dialPatience = 10 * time.Second`,
			new:  `dialPatience = dialLimit`,
		},
		tests: []suite{{pkg: coord, run: "TestAConnectionThatTakesLong"}},
	},
	{
		guard: "each address of a host name is tried",
		edit: edit{
			file: "coord/internal/session/hosts.go",
			old:  `return addresses[known.next%len(addresses)]`,
			new:  `return addresses[0]`,
		},
		tests: []suite{{pkg: inside, run: "TestEachAddressOfAName"}},
	},
	{
		guard: "a panic in a function of Use is its caller's",
		edit: edit{
			file: "coord/use.go",
			old:  `if !left.CompareAndSwap(false, true) {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestAPanicInAFunctionOfUse"}},
	},
	{
		guard: "Close does not wait for the function that calls it",
		edit: edit{
			file: "coord/client.go",
			old:  `if c.isLent() {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestCloseInsideOfUse"}},
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
			old:  `at = from.Add(w.stall)`,
			new:  `_ = from`,
		},
		tests: []suite{{pkg: coord, run: "TestAServerThatHangs"}},
	},
	{
		guard: "replies to what was asked before are a sign of life",
		edit: edit{
			file: "coord/internal/session/examine.go",
			old:  `if i == 0 { //`,
			new:  `if false { //`,
		},
		tests: []suite{{pkg: inside, run: "TestARequestThatQueues"}},
	},
	{
		guard: "a reply that passes over a request is no sign of life",
		edit: edit{
			file: "coord/internal/session/examine.go",
			old:  `if i == 0 { //`,
			new:  `if true { //`,
		},
		tests: []suite{{pkg: inside, run: "TestARequestThatQueues"}},
	},
	{
		guard: "a busy server has more time the second time",
		edit: edit{
			file: "coord/internal/session/dial.go",
			old:  `w.patient = s.busy`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestABusyServer"}},
	},
	{
		guard: "a reconnect begins with a probe",
		edit: edit{
			file: "coord/internal/session/session.go",
			old:  `if s.claims.Load() == 0 {`,
			new:  `if true {`,
		},
		tests: []suite{{pkg: coord, run: "TestTheProbeGoesFirst"}},
	},
}
