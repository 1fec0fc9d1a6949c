package main

// remove is what may be deleted of a recipe that nobody uses.
var remove = []mutant{
	off("remove: whoever is there is left alone", in(shared, "TestRemoveRefusesAnothers"),
		"remains.inUse", `if len(r.there) == 0 {`, `if true {`),
	off("remove: a node is deleted as it was read", in(shared, "TestRemoveIsRefusedIf"),
		"deleteAll", `coord.DeleteOp(n.path, n.version)`, `coord.DeleteOp(n.path, -1)`),
	off("remove: all goes together, or nothing", in(shared, "TestRemoveThatIsRefused"),
		"deleteAll", `room > 0 || len(ops) == 0`, `len(ops) == 0`),
	off("remove: another's node is not the recipe's", in(shared, "TestRemoveRefusesAnothers"),
		"Tree.part", `Who: another`, `Who: another[:0]`),
	off("remove: the latest state counts", in(shared, "TestRemoveLooksAtTheLatest"),
		"Remove", `c.Synced()`, `c`),
	off("no recipe has the servers' own nodes", in(shared, "TestTheServersOwnNodes"),
		"CheckPlace", `case strings.HasPrefix(path+"/", "/zookeeper/"):`, `case false:`),
}
