package main

// shardsOff is who owns which key.
var shardsOff = []mutant{
	off("shards: a key is owned by its lock alone", in(parts, "TestKeysMoveOneByOne"),
		"term.claim", `wait, granted := coord.First(ahead)`, `wait, _ := coord.First(ahead)
		granted := true`),
	off("shards: who is to own a key asks for it", in(parts, "TestKeysMoveOneByOne"),
		"term.claim", `if !granted && !td.quiet && ahead[0].Name != asked {`, `if false {`),
	off("shards: a member that is to have its key again asks for it", in(parts, "TestAKeyThatComesBackUnseen"),
		"term.apply", `if own[key] && !td.quiet {`, `if own[key] {`),
	off("shards: a key that nobody is to own is drained", in(parts, "TestTheLastMember|TestMembersWithAnotherList"),
		"term.apply", `if _, named := p.Owner(p.Place(key)); !named {`, `if false {`),
	off("shards: a drain has an end", in(parts, "TestAFunctionThatDoesNotDrain"),
		"term.serve", `			end(ErrDrainTimeout)`, ``),
	off("shards: a key is taken from a function that never returns", in(parts, "TestAFunctionThatNeverReturns"),
		"term.serve", `				h.Abandon()`, ``),
	off("shards: a function is called once for each time that its key is owned", in(parts, "TestAFunctionThatReturnsEarly"),
		"term.serve", `		case <-draining:
		case <-ctx.Done():
		}
	}`, `		case <-draining:
		default:
		}
	}`),
	off("shards: a planner whose place is lost ends its term, and not Run", in(parts, "TestALossThatThePlanner"),
		"term.do", ` && !errors.Is(err, coord.ErrLost)`, ``),
	off("shards: what a function says after the loss does not end Run", in(parts, "TestWhatIsBroken"),
		"term.own", `if errors.Is(h.Err(), coord.ErrLost) {`, `if false {`),
	off("shards: members with another list are refused", in(parts, "TestMembersWithAnotherList"),
		"term.admit", `if p != nil && (t.list.keys == nil || t.list.hash() == p.list().hash()) {`, `if p != nil {`),
	off("shards: a member is told that the list has changed before it was given a key", in(parts, "TestAPlanIsWritten"),
		"term.apply", `t.joins && !t.named.Load() &&`, `false &&`),
	off("shards: a list that members follow is not replaced", in(parts, "TestMembersWithAnotherList"),
		"term.admit", `return name != t.node() && p.names(name) })`, `return false })`),
	off("shards: a list that nobody follows is replaced", in(parts, "TestMembersWithAnotherList"),
		"planner.read", `len(base.Keys) == 0 || !p.admitted &&`, `len(base.Keys) == 0 || false &&`),
	off("shards: a member with another list gets no key", in(parts, "TestAMemberWithAnotherListGetsNoKey"),
		"Shards.member", `ok = known >= 0 || m.List == "" || m.List == wanted`, `ok = known >= 0 || m.List != "!"+wanted`),
	off("shards: a member whose ID another has ends", in(parts, "TestAnIDThatComesAgain"),
		"term.doubt", `if len(line) != 2 || line[0].Name != t.node() {`, `if len(line) > 0 {`),
	off("shards: the first in line plans", in(parts, "TestAfterACrash"),
		"term.isFirst", `	_, _, err := v.Get(t.members().Dir + "/" + line[at-1].Name)`, `	var err error`),
	off("shards: a plan is written for the one that was read", in(parts, "TestAPlanIsWrittenForTheOneThatWasRead"),
		"planner.step", `s.next.encode(), s.version)`, `s.next.encode(), -1)`),
	off("shards: a plan that is deleted is made again as it was", in(parts, "TestAPlanThatIsDeleted"),
		"planner.read", `cmp.Or(plan, p.last, new(Plan))`, `cmp.Or(plan, new(Plan))`),
	off("shards: some keys at a time", in(parts, "TestAtMostSoMany|TestSomeKeys"),
		"Plan.next", `next.hold(owners, max(0, l.moves-busy))`, `_ = busy`),
	off("shards: a key that has not arrived counts", in(parts, "TestKeysThatHaveNotArrived|TestAtMostSoMany"),
		"Plan.next", `			busy++`, ``),
	off("shards: a key cools down", in(parts, "TestAKeyThatHasMoved"),
		"Plan.next", `next.Owners = assign(owners, zones, seats, hot)`, `next.Owners = assign(owners, zones, seats, make([]bool, len(hot)))`),
	off("shards: as few keys move as may", in(parts, "TestFewKeysMove"),
		"quotas", `if more, other := have[a] > quota[a], have[b] > quota[b]; more != other {`, `if more, other := have[a] < quota[a], have[b] < quota[b]; more != other {`),
	off("shards: a key stays in its zone", in(parts, "TestAKeyPrefersItsZone"),
		"closer", `	if near != otherNear {
		return near
	}
`, ``),
	off("shards: data that are no plan are refused", in(parts, "TestAPlanThatIsNone"),
		"decode", `if !valid {`, `if err != nil {`),
	off("shards: a member that leaves goes when it has nothing left", in(parts, "TestKeysMoveOneByOne|TestAPlannedMove|TestNoKeyIsWithout"),
		"term.leaveIfDone", `if !t.leaving() || len(t.tenders) > 0 || t.err != nil {`, `if !t.leaving() || t.err != nil {`).
		and("term.leaveIfDone", `if t.plan != nil && len(t.plan.Of(t.node())) > 0 {`, `if false {`),
	off("shards: a member is asked to leave", in(parts, "TestAMemberIsAsked"),
		"term.depart", `		t.begin.Do(func() { close(t.leave) })`, `		return nil`),
	off("shards: a router forgets an owner that the plan names no more", in(parts, "TestARouterIsLate"),
		"Router.owner", `if known && named && o.Member.Node == planned.Node {`, `if known {`),
}
