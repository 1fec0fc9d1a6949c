// Package group tells who is there: members with data.
//
// # What
//
// A member has an ID, which no two have at the same time, and data, such as an
// address. [Group.Stay] keeps a member there until its context ends: it joins
// again when its session is lost. [Group.Join] joins once, and returns a hold.
// [Group.Members] lists who is there, and [Group.Observe] follows it.
//
//	g, err := group.New(client, "/services/billing/members")
//	go g.Stay(ctx, "host1", []byte("10.1.2.3:8080"))
//	for members, err := range g.Observe(ctx) {
//
// # Guarantees
//
//   - A member that is shown was there at a moment of the reading, and its
//     session had not ended.
//   - At most one has an ID at a time, under the conditions that package coord
//     states. The token grows from one to the next: whoever acts under the ID
//     is an exclusive holder.
//   - Observe shows every change that lasts, and never goes back in time.
//   - After an error of Join, nothing is left behind.
//
// # Not guaranteed
//
//   - Members and Observe are late: a member may have gone since, and one that
//     died is shown until the servers end its session.
//   - Observe shows the latest state, not every state, and nothing new while it
//     is cut off.
//   - The order in which several clients that want one ID are given it.
//   - A membership can be lost when the previous one under its ID ends: if that
//     one's node was deleted by hand and its client leaves before it is told of
//     the deletion; or if a server carries its deletion out late (see package
//     coord). The member is told within a round trip, and Stay joins again, but
//     another may have joined by then.
//   - A [coord.Hold.Txn] or Set of a member can be carried out under the next
//     one with the same ID, in the same two cases: before its client is told of
//     a deletion by hand (Set only within a round trip), and by a server, late.
//   - Two calls of Join by one client, for one ID with the same data, at the
//     same time: after a lost reply both may take one node for their own. Give
//     them different data.
//
// # When the session or connection fails
//
// A membership lasts until the trust window ends, as any hold. Then Join's hold
// is lost. Stay joins again: while the session lives, it takes its node back,
// and nobody sees it missing. While others see the node of a session that
// this client has given up, Join and Stay wait for its end.
//
// # Znodes
//
// In the Curator dialect, as its GroupMember; every child is a member:
//
//	/services/billing/members        container
//	  host1                          ephemeral; data: the member's
//	  host2
//
// In the Kazoo dialect, as its Party, whose members' data are texts. Kazoo's
// own IDs are random, and other children count for nothing:
//
//	/services/billing/members
//	  host1__party__                 ephemeral
//	  1c7f…__party__                 of a program in Python
//
// # Cost
//
// Join and its release: one request each. Set: three. Members: one listing, and
// one read for each member, together, of those that this process does not watch
// already; it watches them from then on. When a member comes, goes, or changes
// its data, every process that observes lists the directory, and reads the
// members that are new or changed: for n members that all observe, 2 n requests
// for each change.
package group
