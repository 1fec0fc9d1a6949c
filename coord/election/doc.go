// Package election lets exactly one of many replicas act.
//
// # What
//
// Candidates stand in a line; the first leads, and has a [Term]: a hold with a
// fencing token. [Election.Campaign] waits to be elected, [Election.Run] does
// so again and again and runs a function in each term. Others ask for the
// leader by [Election.Leader] or follow it by [Election.Observe]. A leader
// publishes data, such as its address, when it campaigns, or by
// [Term.Proclaim].
//
//	e, err := election.New(client, "/services/billing/leader")
//	err = e.Run(ctx, []byte("10.1.2.3:8080"), func(ctx context.Context, t *election.Term) error {
//		return serve(ctx, t.Token()) // until ctx ends: then the term is over
//	})
//
// With [Health], Run stands and leads only while a check of the caller's
// succeeds. Package probe tells probes and load balancers whether this process
// is well, and whether it leads. [Priority] chooses the next leader among
// the candidates, and [Term.Transfer] and [Election.Transfer] hand the lead to
// one of them.
//
// # Guarantees
//
//   - At most one term can be trusted at a time, under the conditions that
//     package coord states; tokens grow from term to term.
//   - Candidates are elected in the order in which they came, unless one steps
//     behind another: see [Priority] and [Term.Transfer].
//   - When a leader dies, the next leads as soon as the dead one's session has
//     ended: at the latest after the session timeout and two server ticks.
//   - A candidate whose session died while it waited loses its place, and joins
//     again at the end of the line.
//   - [Election.Leader] and [Election.Observe] report only a candidate that was
//     first in line, with a living session, at a moment of the reading.
//     Leader's answer is no older than the call, on any server; Observe never
//     goes back in time.
//   - Run never begins a term before the function has returned from the last.
//   - What Proclaim writes is written only while the term's node exists.
//
// # Not guaranteed
//
//   - A leader that is paused (stopped, swapped) longer than the session
//     timeout does not know that it lost its term until it runs again; see
//     package coord. Give the [coord.Hold.Token] to the resources it acts on,
//     or write by [coord.Hold.Txn].
//   - The term may be over when Leader returns it, and an observer that is cut
//     off keeps the last term it saw. To know that a message comes from the
//     newest leader, compare tokens.
//   - A leader that cannot reach the servers gives its term up when the trust
//     window ends, a little before the servers do: for that time the line still
//     shows it, though it no longer leads.
//   - Observe shows the latest state, not every state.
//   - Leader and Observe may show a candidate that is first in line and steps
//     aside.
//   - A request to step down leaves the leader's data in Curator's dialect. In
//     Kazoo's, or if another program writes the request, it replaces them,
//     unless they are the identity: Leader then has none to show until the next
//     Proclaim, and Observe keeps what it saw.
//   - In Curator's dialect only a leader can be asked, and only one that leads
//     by this package; see [coord/inspect.Revoke].
//
// # When the session or connection fails
//
// A term outlasts an outage that is shorter than the trust window, and ends
// otherwise; the function of Run sees its context end, and must return. A
// candidate waits on over a lost connection, and stands again after a lost
// session. Observe goes on in both cases.
//
// # Znodes
//
//	/services/billing/leader                    container
//	  _c_<uuid>-latch-                          the leader's notice, ephemeral
//	  _c_<uuid>-latch-0000000007                leader, ephemeral; data: 10.1.2.3:8080
//	  _c_<uuid>-latch-0000000009                next candidate
//
// This is the layout of Curator's LeaderLatch: Go and Java stand in one line.
// The notice ([inspect.Notice]) is made when the leader is elected, and deleted
// together with its node. The leader's data, and requests to it, are written
// there: a write into a candidate's node would use up the watch of a
// LeaderLatch behind it, which would wait for ever. Java takes the notice for
// the first in line: getLeader reads it, and getParticipants lists a leader in
// Go twice.
//
// The Kazoo dialect uses the layout of Kazoo's Election, <hex>__lock__<number>,
// without a notice. Curator's LeaderSelector uses the nodes of a mutex instead,
// and does not mix with either.
//
// # Cost
//
// Campaign: create and list, which travel together, one round trip; then a read
// of the directory's data, and the notice. Resign: one request. A candidate
// watches the two before it, and its node: when a leader goes, the two behind
// it are woken, and no others. Proclaim: one request, one more before its nodes
// are watched. Leader: an empty write, a list, a read of the notice and one of
// the node, one after the other. Observe: the same at the beginning; then a
// list and a read for each change, one read more when another leads, and every
// observer wakes at each. In the Kazoo dialect there is no notice to make or to
// read.
package election
