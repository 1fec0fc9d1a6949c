// Package history records what the clients of a test did and saw, and judges
// afterwards whether the recipes kept their promises.
//
//	rec := history.New()
//	...
//	g, err := history.Acquire(rec, "client 1", path, history.Exclusive, func() (*coord.Hold, error) {
//		return mutex.Acquire(ctx)
//	})
//	...
//	err = g.Release(ctx)
//	...
//	history.Check(t, rec, history.Mutex(path))
//
// # Records
//
// A [Record] is an operation with the times of its call and its return, or an
// event, such as a loss. Times are counted from the recorder's beginning, by
// the monotonic clock (in a testing/synctest bubble the virtual one), and no
// two are equal: what happened in one process is totally ordered. Records of
// other processes are added by [Recorder.Import].
//
// A hold is trusted from the return of its acquisition to the call of its
// release or the moment of its loss. A loss counts from the end of the trust
// window if that came before the loss was noticed, since from then on the hold
// itself says that it is lost; see also [Recorder.ByChecks]. Where a test has a
// hold's node deleted, or its session killed before its time, the next holder
// may come before the loss can be known: record that with [Recorder.Break], and
// the hold counts up to there.
//
// An operation whose outcome is not known is [Unknown], or open if its process
// died before it returned: it may have taken effect at any time after its
// call, or never.
//
// # Rules
//
// [Mutex], [Turns], [Election], [ReadersWriter], [Leases], [Queue], [Jobs],
// [Numbers], [Counter], [Rounds] and [Barrier] judge the records of one key.
// Each looks for violations directly, over the whole history, and many have
// porcupine find an order of the operations that a sequential model of the
// recipe allows, which also gives the picture of a failure.
//
// [Check] applies rules. When one is violated, it fails the test, keeps the
// records (JSON lines), the notes (seed, faults) and the pictures as files in
// the folder of artefacts, and says where.
package history
