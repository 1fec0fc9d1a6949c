// Package soak puts every recipe under a long mix of faults on a real ensemble
// of three servers, and judges the recorded history.
//
//	make soak DURATION=10m SEED=1
//
// Clients in this process reach the servers through proxies of their own;
// further clients are child processes, which connect directly and are stopped
// and killed. All compete at the same places, each of which has one recipe: a
// lock with short holds, one with long holds, and so on. Four kinds of lanes
// cause faults, each lane one after the other, by the seed:
//
//   - one for the servers: kills and stops of followers and of the leader,
//     leaders that are superseded while they stand still, followers cut off
//     from their leader, both ways or one, or lagging behind it, links that
//     break out of a silence, a lost quorum;
//   - one for each client: cut connections, lost requests and replies, black
//     holes, delays, ended sessions, deleted nodes, servers that do not answer;
//   - one for each child: pauses, within and beyond the session timeout, and
//     kills;
//   - one for the shards: the plan written over or deleted, everything deleted,
//     other keys set, strangers in a key's line, rivals of one ID.
//
// A fault counts when it was seen to have happened. Before each fault of the
// servers, and again after it, the grants per second must reach a floor; after
// each fault of a client, that client must be granted something.
//
// Exclusive holders use a resource that refuses tokens smaller than the largest
// it has seen, and write into ZooKeeper by transactions; both are part of the
// verdict. Writers of the read/write locks sometimes go on as readers, with no
// gap on record. No client may pass the barrier within a time in which it was
// certainly shut. A client of this process must learn of the loss of a hold by
// the end of its window, plus the delay of timers.
//
// When the time is over, the faults end. Within T + 2 s, and the time for which
// a hold lasts there, some client must be granted something at each place that
// one client can use, and every worker soon after, and every key of the shards
// is owned; then all stop, and nothing may be left behind: nodes, watches,
// goroutines, open files, or more of the heap than open clients account for. A
// child's heap is not looked at.
//
// Servers of ZooKeeper 3.8.0 can lose what they have acknowledged
// (ZOOKEEPER-4643): an item that was taken may come again. The servers' logs,
// which are kept, show the loss: two of them say "Truncating log to get in sync
// with the leader" at about that time, and name the same change.
//
// The report goes to standard output and to the folder of artefacts. An
// interrupt ends the faults early; the verdict on the time until then follows.
package soak
