package main

// queue is the queue.
var queue = []mutant{
	{
		guard: "queue: an ack removes only what its receiver still has",
		edit: edit{
			file: "coord/queue/item.go",
			old:  `return i.settle(ctx, "ack", coord.DeleteOp(i.queue.entry(i.name), i.version))`,
			new:  `return i.settle(ctx, "ack", coord.DeleteOp(i.queue.entry(i.name), -1))`,
		},
		tests: []suite{{pkg: items, run: "TestAnAckOfAnItemThatAnotherHas|TestNothingIsRemovedThat|TestAnItemIsSettledOnce"}},
	},
	{
		guard: "queue: a claim is deleted only while it is the own",
		edit: edit{
			file: "coord/queue/receive.go",
			old:  `Proof: []coord.Op{coord.CheckOp(q.entry(name), item.version)},`,
			new:  ``,
		},
		tests: []suite{{pkg: items, run: "TestNothingIsRemovedThat|TestAnAckOf"}},
	},
}
