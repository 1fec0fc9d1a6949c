// Package recipetest tests a recipe: each of its calls meets what may go wrong,
// on an embedded server, in virtual time. The project's own recipes are tested
// with it, and yours can be, too; it links nothing that the library does not.
//
//	recipetest.Run(t, recipetest.Recipe[*Latch]{
//		New: func(c *coord.Client, path string) (*Latch, error) { return NewLatch(c, path, 1) },
//		Calls: []recipetest.Call[*Latch]{
//			{Name: "CountDown", Do: countDown, Done: wait, Requests: 6, RoundTrips: 6},
//			{Name: "Wait", Do: wait, Ready: countDown, Unblock: countDown, Op: "wait", Requests: 1, RoundTrips: 1},
//		},
//	})
//
// # What
//
// [Run] makes a subtest for each call and condition. A fault strikes each
// request of a call in turn, so a call of four requests is made four times in
// each condition. In all of them a call ends with its context, or at most 100
// ms later, with an error that is the context's and a [coord.OpError] with the
// recipe's path; and a call that fails leaves no node behind.
//
//	refused            New refuses paths that cannot be right, and no client;
//	                   what stands in Refused is refused before a request
//	context ended      the call ends at once, and makes no request
//	no answer          the call ends with its context; it says that no server
//	                   has answered
//	lost request,      the call succeeds, and has done once what it does;
//	lost reply,        or is unconfirmed where the table says so
//	throttled
//	session ended      the call succeeds in the next session; one that is about
//	                   a hold may report the loss
//	closed client      the call ends at once, with coord.ErrClosed
//	cost               requests and round trips are as in the table
//
// A call that may wait is made to wait, too: its context ends, its client is
// closed, its session ends, its connection is cut while its turn comes.
//
// # Not guaranteed
//
// What the recipe is for: that one holds at a time, that no item is lost. A
// test of that is yours.
package recipetest
