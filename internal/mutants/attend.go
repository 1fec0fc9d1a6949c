package main

// attendance is which sessions an attendant closes, and whose.
var attendance = []mutant{
	off("attendant: a process that says goodbye has not died", in(attended, "TestAClientThatIsClosed"),
		"Client.converse", `_ = conn.SetWriteDeadline(time.Now().Add(leaveWithin))
			_ = Write(conn, Message{Leave: true})`,
		`_ = leaveWithin`),
	off("attendant: a server has time to answer, however many refused before", in(told, "TestAServerHasTimeToClose"),
		"Closer.Close", `limit = min(2*limit, s.Timeout)`, `limit *= 2`),
	off("attendant: a connection without an answer is kept", in(attended, "TestAConnectionToAnAttendantThatDoesNotAnswer"),
		"Client.converse", `c.tell(ErrNoAnswer)`, `return false, ErrNoAnswer`),
	off("attendant: a client connects again", in(attended, "TestAnAttendantThatIsRestarted"),
		"Client.Run", `c.tell(err)`, `if c.tell(err); attended { return }`),
	off("attendant: a bad frame is no death", in(attended, "TestABadFrame"),
		"Attendant.part", `died = s != nil && gone(err)`, `died = s != nil`),
	off("attendant: a death within a frame is one", in(attended, "TestAFrameThatIsCutShort"),
		"gone", `|| errors.Is(err, io.ErrUnexpectedEOF)`, ""),
	off("attendant: unread answers hide no death", in(attended, "TestAProcessThatDiesWithoutReading"),
		"gone", `|| errors.Is(err, syscall.ECONNRESET)`, ""),
	off("attendant: a session that is told again is not closed", in(attended, "TestASessionThatIsToldAgainWithin"),
		"Attendant.bury", `if a.attends(s) {`, `if false {`),
	off("attendant: what a dead process has sent has the grace to arrive", in(attended, "TestF63TheNextInLine"),
		"Attendant.bury", `time.After(a.options.Grace)`, `time.After(0)`),
	off("attendant: a session is one user's", in(attended, "TestASessionIsOneUsers"),
		"Attendant.attend", `case e.user != p.user:`, `case false:`),
	off("attendant: a session that is told twice is forgotten twice", in(attended, "TestASessionIsOneUsers"),
		"Attendant.drop", `if e := a.sessions[k]; e.connections > 1 {`, `if e := a.sessions[k]; e == nil {`),
	off("attendant: one user's connections are limited", in(attended, "TestClientsBeyondTheLimit"),
		"Attendant.admit", `case u.peers >= a.options.MostOfUser:`, `case false:`),
	off("attendant: all connections are limited", in(attended, "TestClientsBeyondTheLimit"),
		"Attendant.admit", `case len(a.peers) >= a.options.Most:`, `case false:`),
	off("attendant: a connection counts until its session is closed", in(attended, "TestAConnectionCountsUntil"),
		"Attendant.Serve", `defer a.release(p)`, `a.release(p)`),
	off("attendant: the client's credentials are presented", in(network, "TestAFarewellPresents"),
		"Farewell.Say", `range f.credentials { //`, `range f.credentials[:0] { //`),
	off("attendant: no frame takes more memory than it may", in(told, "TestALargeFrame"),
		"Read", `if size > maxBody {`, `if false {`),
	off("attendant: the guard keeps the connection while the command may act", in(service, "TestTheSessionIsKeptWhile"),
		"Start", `pass(life.write, o.Keep, toKeep)`, `_ = toKeep`),
	off("attendant: the guard keeps the connection to the next attendant", in(service, "TestTheSessionIsKeptWhile"),
		"attended.share", `p.Keep(connection)`, `_ = p`),
	off("attendant: a session that is left to run out is not closed", in(service, "TestASessionThatIsLeftToRunOut"),
		"run.end", `r.attended.leave()`, `_ = r.attended.leave`),
	off("guard: the session of a killed owner is closed", in(service, "TestTheGuardOfAKilledOwner"),
		"exitLegacies", `_ = syscall.Exec(`, `_ = fmt.Sprint(`),
	off("guard: a reaper whose owner lives leaves the session alone", in(keeper, "TestAnOwnerThatLives"),
		"inherit", `return nil`, `return l`),
	off("guard: an owner that abandons the guard needs no farewell", in(keeper, "TestAnOwnerThatLives"),
		"Process.Abandon", `p.lives()`, `_ = p.lives`),
	off("guard: what a command leaves behind keeps the session of its owner", in(service, "TestWhatACommandLeavesBehind"),
		"exitLegacies", `!childless();`, `false;`),
	off("attendant: a session that is told again is attended all the time",
		in(attended, "TestASessionThatIsToldAgainIsAttended"),
		"Attendant.attend", `	e.connections++
	a.drop(p)
`,
		`	a.mu.Unlock()
	a.forget(p)
	a.mu.Lock()
	a.sessions[k] = e
	e.connections = 1
`),
}
