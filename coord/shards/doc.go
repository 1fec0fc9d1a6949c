// Package shards spreads keys over members: each key has one owner at a time.
//
// # What
//
// A key is a part of the work: a tenant, a partition, a range of a hash. The
// members share the keys among themselves by their [Weight], and move as few as
// possible when one comes or goes. [Shards.Run] calls a function for each key
// that this member owns:
//
//	s, err := shards.New(client, "/shards/orders", shards.Ranges(256), shards.Data([]byte(address)))
//	err = s.Run(ctx, func(ctx context.Context, key string, h coord.Held) error {
//		return serve(ctx, shards.Draining(ctx), key, h.Token())
//	})
//
// What is desired and what is so are two things. The first member in line is
// the planner: it writes into one node, the plan, which member is to own which
// key. A member owns a key only while it holds the key's own mutex, with the
// key's own token. Each key moves on its own: the member that the plan names
// stands in the key's line and asks the owner, whose function learns of it by
// [Draining], finishes, and returns. No other key is touched.
//
// [Shards.Leave] gives all keys away before a planned stop. [Shards.Owner] and
// [Router] tell others who has a key, [Shards.Status] how each key is.
//
// A key has a life of its own in its member ([Life]): it waits for its former
// owner, is owned, drains; it is failing if its function has failed, and given
// up if its function has not returned in time.
//
// # Guarantees
//
//   - A key has at most one owner at a time, under the conditions that package
//     coord states, whatever the plan says and whoever knows it. The token
//     grows from owner to owner.
//   - When one of n members of the same weight comes or goes, at most keys/n+1
//     keys move. A member has its share by weight, rounded down or up.
//   - A key that moves has no owner for two round trips at most, beyond what its
//     function takes to drain it, if both members are connected. It is not
//     released before the next owner stands in line.
//   - A member that does not know the plan, or is cut off, owns what it has
//     until its trust window ends.
//   - Three things end a member: its context, Leave, and a refusal, since its
//     list conflicts with the members' ([coord.ErrDisagree]), another has its
//     ID ([ErrReplaced]), or the plan has no room for it ([coord.ErrTooLarge]).
//     A member that is too many is refused, and the others go on.
//   - What goes wrong with one key stops that key: a function that fails is
//     called again after 1 s to 1 min, one that hangs is given up after
//     [DrainTimeout], and a key that another program's node keeps is tried for.
//     The member says so ([OnEvent], [Shards.Status]).
//   - What is set stays set: a list of [Shards.SetKeys] or of a newer
//     [ListVersion] replaces the lists of members that come with an older one.
//     Members remember the list and the plan: if the plan is deleted or written
//     over, or the servers lose their data, the planner writes it anew.
//   - Every call ends with its context, Run when the functions have returned, or
//     DrainTimeout and a second later.
//
// # Not guaranteed
//
//   - That every key has an owner: after a crash its keys have none until the
//     servers end its session, T after its last sign of life, and a moment more
//     (with an attendant, 0.3 s).
//   - [MovesAtATime] and [Cooldown] are the planner's: give all members the same.
//     They bound what the planner wants. A key whose owner dies moves at once.
//   - A member that lags behind may ask for a key that it is no longer to have.
//     The key then moves twice.
//   - A function that has not returned a second after [DrainTimeout] has ended
//     its context may still run while another owns the key. The token is for
//     that.
//   - Balance is by the number of keys and the weights, not by the load.
//   - A member of an older version does not follow a plan of a newer format: it
//     keeps what it has, and says so.
//
// # When the session or connection fails
//
// Keys last over outages of T/3. When its session is lost, a member's functions
// end, and it joins again; with the same [ID] it is to have its former keys.
// While no planner can write, nothing moves, and nothing stops.
//
// # Znodes
//
//	/shards/orders                                          container
//	/shards/orders/members/_c_<uuid>-member-0000000003      ephemeral, in line: the first is the planner
//	/shards/orders/plan                                     persistent: JSON
//	/shards/orders/keys/<key>/_c_<uuid>-lock-0000000007     ephemeral: owns the key
//	/shards/orders/keys/<key>/_c_<uuid>-lock-0000000008     ephemeral: is to own it next
//
// A key is a node's name, escaped as in a URL, of at most 200 bytes then; its
// lock is one of package lock's. The plan names the members by their nodes, and
// who is not named there is no member. A member's node says what it is, which
// list it knows, and which keys are failing or given up. The plan is one node,
// so it must fit into one packet, of which the list of keys may take three
// quarters: 10,000 keys of 75 bytes, or 100,000 [Ranges], for 100 members.
//
// [Shards.Remove] deletes all of it.
//
// # Cost
//
// A key: 3 requests when it is acquired, one when it is released, and 5 for a
// move. A change of the plan: one write, and one read of the whole plan by each
// member and each router. Only the planner watches the members, and with
// [MovesAtATime] the keys that move: 3 requests for each step of theirs. A
// member watches the plan, the member before it in line until it is the first,
// and its own keys. A planner waits 0.1 s after a change for others that belong
// to it. A member writes its node at most once a second while keys fail.
package shards
