package main

// members is who is in a group, and what becomes of values and counters.
var members = []mutant{
	off("group: one waits for the other that has its ID", in(groups, "TestOneAtATimeHasAnID"),
		"Group.join", `if !errors.Is(err, coord.ErrNodeExists) {`, `if true {`),
	off("group: a member whose session is lost joins again", in(groups, "TestAMemberWhoseSessionIsLost"),
		"Group.Stay", `		case <-m.Done():`, `		case <-m.Done():
			return nil`),
	off("group: a member leaves after its context's end", in(groups, "TestAMemberWhoseSessionIsLost"),
		"Group.Stay", `return m.Release(leaving)`, `return leaving.Err()`),
	off("group: a request to leave does not hide the data", in(groups, "TestAMemberThatIsAsked"),
		"Group.look", `inspect.OwnData(data)`, `data`),
	off("group: data that mean a request are refused", in(groups, "TestWhatIsNoMember"),
		"check", `if inspect.IsRevocation(data) {`, `if false {`),
	off("group: an ID is a node's name", in(groups, "TestWhatIsNoMember"),
		"Group.join", `if id == "" || strings.ContainsRune(id, '/') {`, `if false {`),
	off("group: Kazoo's members have their own names", in(groups, "TestOnlyMembers"),
		"Group.look", `return !strings.HasSuffix(name, g.suffix)`, `return false`),
	off("value: a change is made once", in(values, "TestAChangeWhoseReplies"),
		"Value.Change", `err := v.record.Change(ctx, v.guard.Txn,`, `err := v.record.Change(ctx, v.client.Txn,`),
	off("value: a change that may have been made is not made again", in(values, "TestAChangeThatCannotBeFoundOut"),
		"Value.Change", `if errors.Is(err, coord.ErrUnconfirmed) {`, `if false {`),
	off("value: a value of another time is another one", in(values, "TestAValueIsSetOnly"),
		"state", `return State{data, stat.Mzxid, stat.Modified}`, `return State{data, int64(stat.Version), stat.Modified}`),
	off("value: one is set only if it is the one that was read", in(values, "TestAValueIsSetOnly"),
		"Value.TrySet", `if now.Version != read.Version {`, `if false {`),
	off("value: it does not go with its guards", in(values, "TestAValueOutlives"),
		"New", `client.ExactlyOnce(path + "-guards")`, `client.ExactlyOnce(path)`),
	off("counter: a number does not wrap around", in(counts, "TestANumberThatDoesNotFit"),
		"Counter.Add", `sum > number != (delta > 0)`, `false`),
	off("counter: a number has its width", in(counts, "TestANumberIsAsWide"),
		"Counter.encode", `if len(before) == 4 || len(before) == 8 {`, `if false {`),
	off("counter: 32 bits are 32 bits", in(counts, "TestANumberThatDoesNotFit"),
		"Counter.encode", `case number < math.MinInt32 || number > math.MaxInt32:`, `case number == math.MinInt64:`),
	off("counter: other data are no number", in(counts, "TestOtherData"),
		"Counter.Add", `number, err := c.decode(now.Data)`, `number, _ := c.decode(now.Data)
		var err error`),
}
