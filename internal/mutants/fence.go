package main

// fencing is what refuses the writes of former holders.
var fencing = []mutant{
	off("fence: a table keeps the newest token", in(tables, "TestAPausedHolder"),
		"NewSQL", `excluded.token WHERE f.token <= excluded.token`, `excluded.token`),
	off("fence: a transaction that changes no row of the table is stale", in(tables, "TestATransactionIsGuarded"),
		"SQL.guard", `if moved < 1 {`, `if moved < 0 {`),
	off("fence: a refused transaction is rolled back", in(tables, "TestARefusedTransaction"),
		"SQL.Guard", `		_ = tx.Rollback() //`, `		//`),
	off("fence: a token is positive", in(fences, "TestNamesAndTokens"),
		"validToken", `if token <= 0 {`, `if false {`),
	off("fence: a store keeps the newest token", in(tables, "TestAStore"),
		"accepts", `if token < newest {`, `if false {`),
	off("fence: a file is not replaced with an older token", in(fences, "TestAFileIsReplaced"),
		"underLock", `if token < newest {`, `if false {`),
	off("fence: the token is kept before a file is replaced", in(fences, "TestAFailedRename"),
		"underLock", `if err := writeToken(f, token); err != nil {`,
		`if err := then(); err != nil {
			return err
		}
		if err := writeToken(f, token); true {`),
	off("fence: a file is replaced under its lock", in(fences, "TestAWaitForTheLock"),
		"lockOf", `locked, err := tryLock(f)`, `locked, err := true, error(nil)`),
	off("fence: the lock of a file is that of the file with its name", in(fences, "TestATokenIsNotWritten"),
		"lockOf", `	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(opened, named), err`, `	return opened != named, nil`),
	off("fence: a file without a token that can be read lets nobody in", in(fences, "TestAFileWhoseToken"),
		"readToken", `err == nil && token > 0 {`, `err == nil {`),
	off("fence: a request waits for the older ones that are served", in(fences, "TestANewerRequest"),
		"handler.serve", `	case <-p.alone:
		err`, `	default:
		err`),
	off("fence: no older request is served beside a newer one", in(fences, "TestANewerRequest"),
		"gate.enter", `case token < last.token:
		return nil, accepts(name, last.token, token)`, `case token < last.token:`),
	off("fence: a request that is served ends when a newer one comes", in(fences, "TestANewerRequest"),
		"handler.serve", `	defer context.AfterFunc(p.over, func() { cancel(context.Cause(p.over)) })()`, ``),
	off("fence: what the store does not accept does not pass", in(fences, "TestAHandler"),
		"handler.serve", `err = h.store.Raise(ctx, name, token)`, `_ = h.store.Raise(ctx, name, token)`),
	off("fence: nothing is sent without a hold", in(fences, "TestATransportSendsNothing"),
		"transport.RoundTrip", `errors.Join(t.hold.Err(), validToken(token))`, `error(nil)`),
	off("fence: a check insists on the refusal", in(fences, "TestCheck"),
		"Check", `case err == nil:`, `case false:`),
	off("a known token is on disk before the rename", in(fences, "TestAKnownToken"),
		"underLock", `if err := writeToken(f, token); err != nil {`, `if token > newest {
		err = writeToken(f, token)
	}
	if err != nil {`),
}
