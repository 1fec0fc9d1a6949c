package main

// connection is what lies between the client library and a server.
var connection = []mutant{
	{
		guard: "one connection object for one session",
		edit: edit{
			decl: "tap.Established",
			old:  `case w.ID != known:`,
			new:  `case w.ID != known && w.ID == 0:`,
		},
		tests: []suite{{pkg: coord, run: "TestAHoldIsLostWhenItsServerBegins"}},
	},
	{
		guard: "a throttled request is repeated",
		edit: edit{
			decl: "codes",
			old:  `-127: ErrThrottled,`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestWhateverTheServerThrottles"}},
	},
	{
		guard: "a packet that servers close on is given up",
		edit: edit{
			decl: "packets.verdict",
			old:  `p.closed >= proof && time`,
			new:  `p.closed >= 100 && time`,
		},
		tests: []suite{{pkg: coord, run: "TestAPacketThatServersCloseOn"}},
	},
	{
		guard: "trials of a size are made one at a time",
		edit: edit{
			decl: "packets.admit",
			old:  `defer func() { <-p.alone }()`,
			new:  `<-p.alone`,
		},
		tests: []suite{{pkg: coord, run: "TestManyPacketsThatServersCloseOn"}},
	},
	{
		guard: "a connection that is closed under a packet proves nothing about its size",
		edit: edit{
			decl: "packets.refused",
			old:  `case pending[at].Trial:`,
			new:  `default:`,
		},
		tests: []suite{{pkg: coord, run: "TestF60"}},
	},
	{
		guard: "nor does one under a trial, where connections are closed anyway",
		edit: edit{
			decl: "packets.refused",
			old:  `p.closed = 0`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestF60ConnectionsThatAreClosedAnyway"}},
	},
	{
		guard: "an answer to a large packet clears those of its size",
		edit: edit{
			decl: "packets.answered",
			old:  `p.suspect, p.closed = 0, 0`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestF60ConnectionsThatAreClosedUnder"}},
	},
	{
		guard: "a session that was given up is closed where servers still have it",
		edit: edit{
			decl: "Keeper.closeFormer",
			old:  `!errors.Is(s.Err(), errGivenUp) || len`,
			new:  `true || len`,
		},
		tests: []suite{{pkg: coord, run: "TestASessionThatWasGivenUp"}},
	},
	{
		guard: "a server that closes on containers gets persistent nodes",
		edit: edit{
			decl: "packets.hasContainers",
			old:  `return p.containers < 2`,
			new:  `return true`,
		},
		tests: []suite{{pkg: coord, run: "TestAServerThatClosesTheConnectionOnAContainer"}},
	},
	{
		guard: "queue: an item whose claim is too large with the data is claimed without",
		edit: edit{
			decl: "Queue.obtain",
			old:  `if errors.Is(err, coord.ErrTooLarge) { // with the data`,
			new:  `if false { // with the data`,
		},
		tests: []suite{{pkg: coord, run: "TestAnItemThatFitsWhereItsClaim"}},
	},
	{
		guard: "the client library never sees a write error",
		edit: edit{
			decl: "Conn.Write",
			old:  `return len(p), nil`,
			new:  `return len(p), c.broken`,
		},
		tests: []suite{{pkg: network, run: "TestAWriteErrorIsNeverShown"}},
	},
	{
		guard: "a connection that cannot be written on is ended",
		edit: edit{
			decl: "Conn.transmit",
			old: `			_ = c.Conn.Close()
			return`,
			new: `			return`,
		},
		tests: []suite{{pkg: coord, run: "TestAnErrorInWritingTheCredentials"}},
	},
	{
		guard: "a session is not continued on a server that lags behind what it knows of",
		edit: edit{
			decl: "Session.dial",
			old:  `Seen: s.seen,`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestASessionTellsTheNextServer"}},
	},
	{
		guard: "what was asked on a connection that is lost is answered",
		edit: edit{
			decl: "Conn.lose",
			old:  `r.Tell(0, ErrConnection)`,
			new:  ``,
		},
		tests: []suite{{pkg: network, run: "TestWhatIsAskedTogether"}},
	},
	{
		guard: "what is queued on a connection that is lost is answered",
		edit: edit{
			decl: "Conn.lose",
			old:  `append(c.pending, c.asked...)`,
			new:  `c.pending`,
		},
		tests: []suite{{pkg: network, run: "TestARequestThatWasNotSentYet"}},
	},
	{
		guard: "what takes long to write, but goes on, is no sign of a hung server",
		edit: edit{
			decl: "Conn.transmit",
			old:  `slices.Chunk(packets, most)`,
			new:  `slices.Chunk(packets, len(packets))`,
		},
		tests: []suite{{pkg: network, run: "TestMuchThatIsAskedTogether"}},
	},
	{
		guard: "a packet that a server closed on is known also when it was being written",
		edit: edit{
			decl: "Conn.transmit",
			old:  `if !errors.Is(err, net.ErrClosed) { //`,
			new:  `if true || errors.Is(err, net.ErrClosed) { //`,
		},
		tests: []suite{{pkg: network, run: "TestAPacketThatAServerClosedOnIsKnown"}},
	},
	{
		guard: "the client library takes back no deadline of what is asked past it",
		edit: edit{
			decl: "Conn.SetWriteDeadline",
			old:  `SetWriteDeadline(time.Time) error { return nil }`,
			new:  `SetWriteDeadline(t time.Time) error { return c.Conn.SetWriteDeadline(t) }`,
		},
		tests: []suite{{pkg: network, run: "TestAServerThatTakesNothing"}},
	},
	{
		guard: "a busy server can hold requests back: their numbers are above 0",
		edit: edit{
			decl: "Conn.Ask",
			old:  `switch r.xid = 1 + number; {`,
			new:  `switch r.xid = -number; {`,
		},
		tests: []suite{{pkg: network, run: "TestWhatIsAskedTogether"}},
	},
	{
		guard: "requests of the session's own end with their contexts",
		edit: edit{
			decl: "roundTrip",
			old: `	case <-ctx.Done():
		return zero, Ended(ctx)
	}`,
			new: `	}`,
		},
		tests: []suite{{pkg: coord, run: "TestAReadEndsWithItsContext|TestATransactionEndsWithItsContext"}},
	},
	{
		guard: "a server that does not answer a handshake is given up",
		edit: edit{
			decl: "Conn.applyDeadline",
			old:  `at = c.greeted.Add(c.Limit)`,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestAServerThatDoesNotAnswerTheHandshake"}},
	},
	{
		guard: "a reply that is cut short fails its call and the connection",
		edit: edit{
			decl: "Conn.examine",
			old:  `!d.reads(r.Read) {`,
			new:  `!d.reads(r.Read) && false {`,
		},
		tests: []suite{{pkg: inside, run: "TestF58"}},
	},
	{
		guard: "a packet is whole in time",
		edit: edit{
			decl: "Conn.applyDeadline",
			old:  `if !c.whole.IsZero() && (`,
			new:  `if false && (`,
		},
		tests: []suite{{pkg: network, run: "TestF59APacketThatIsNeverWhole"}},
	},
	{
		guard: "before the handshake no packet is larger than one",
		edit: edit{
			decl: "Conn.readFrame",
			old:  `limit, timeout = maxHandshake, c.Limit`,
			new:  `timeout = c.Limit`,
		},
		tests: []suite{{pkg: network, run: "TestF59BeforeTheHandshake"}},
	},
	{
		guard: "what is announced takes no memory",
		edit: edit{
			decl: "Conn.readFrame",
			old:  `min(n-len(frame), max(len(frame), c.in.Size()))`,
			new:  `n-len(frame)`,
		},
		tests: []suite{{pkg: network, run: "TestF59WhatIsAnnounced"}},
	},
	{
		guard: "an attempt to connect that takes long goes on beside the others",
		edit: edit{
			decl: "closeLimit",
			old:  `dialPatience = 10 * time.Second`,
			new:  `dialPatience = dialLimit`,
		},
		tests: []suite{{pkg: coord, run: "TestAConnectionThatTakesLong"}},
	},
	{
		guard: "each address of a host name is tried",
		edit: edit{
			decl: "hosts.pick",
			old:  `return addresses[known.next%len(addresses)]`,
			new:  `return addresses[0]`,
		},
		tests: []suite{{pkg: inside, run: "TestEachAddressOfAName"}},
	},
	{
		guard: "a reply that says that the session has expired ends it",
		edit: edit{
			decl: "tap.Answered",
			old:  `if err == wire.ErrExpired {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestAServerThatSaysThatTheSessionHasExpired"}},
	},
	{
		guard: "a server that does not answer a request is given up after T/2",
		edit: edit{
			decl: "Conn.applyDeadline",
			old:  `at = from.Add(c.stall)`,
			new:  `_ = from`,
		},
		tests: []suite{{pkg: coord, run: "TestAServerThatHangs"}},
	},
	{
		guard: "replies to what was asked before are a sign of life",
		edit: edit{
			decl: "Conn.match",
			old:  `if i == 0 { //`,
			new:  `if false { //`,
		},
		tests: []suite{{pkg: network, run: "TestARequestThatQueues"}},
	},
	{
		guard: "a reply that passes over a request is no sign of life",
		edit: edit{
			decl: "Conn.match",
			old:  `if i == 0 { //`,
			new:  `if true { //`,
		},
		tests: []suite{{pkg: network, run: "TestARequestThatQueues"}},
	},
	{
		guard: "a busy server has more time the second time",
		edit: edit{
			decl: "Session.dial",
			old:  `Patient: s.busy, `,
			new:  ``,
		},
		tests: []suite{{pkg: coord, run: "TestABusyServer"}},
	},
	{
		guard: "a reconnect begins with a probe",
		edit: edit{
			decl: "tap.Opened",
			old:  `if s.claims.Load() > 0 {`,
			new:  `if false {`,
		},
		tests: []suite{{pkg: coord, run: "TestTheProbeGoesFirst"}},
	},
}
