// Package once does a job once, by any of the clients that come for it.
//
// # What
//
// A [Once] is a ledger of jobs, each with a key and a record. [Once.Do] runs
// the function if the job was not done, and returns the result; whoever comes
// later gets the stored result without running anything, and whoever comes
// meanwhile waits for it, or is told that the job runs ([Once.TryDo]).
//
//	o, err := once.New(client, "/jobs/migrations")
//	res, err := o.Do(ctx, "v42", func(ctx context.Context, r *once.Run) ([]byte, error) {
//		return nil, migrate(ctx, r.Token())
//	})
//
// Each job has a lock of its own. The end of a run is put on record in the same
// transaction that releases the lock, so there is no moment at which the job is
// done and the next client may begin it.
//
// How often a job may be begun is for its users to say:
//
//   - By default at least once: a run that failed, or whose client crashed, is
//     followed by another one, which knows the number of its attempt.
//   - [FailOnce] gives up after a failure, and only a crash is followed by
//     another run.
//   - [Attempts] gives up after n runs, whether they failed or crashed.
//   - Attempts(1, 0) is at most once: after a crash the job is begun and not
//     ended, and all who ask are told so ([ErrUnfinished]).
//
// # Guarantees
//
//   - A job whose end is on record is not begun again, until [Once.Forget],
//     [Keep] or [KeepLast] have deleted the record.
//   - A job runs at most once at a time, under the conditions that package
//     coord states. The token of a run ([coord.Hold.Token]) is larger than
//     those of the runs before it.
//   - A run begins when its attempt is on record: with Attempts(n), the function
//     is called n times at most, by all clients together, in whatever way they
//     end. If Do's context ends before it calls the function, it takes the
//     attempt back, which needs a server that answers within 50 ms.
//   - The result is the one of the run whose end is on record. A client that
//     was cut off and goes on cannot overwrite it.
//   - Records are deleted only while nobody has the job, by a transaction of
//     one who holds its lock, at most 16 before each run.
//   - Every call ends with its context, but for the function.
//
// # Not guaranteed
//
//   - That the function's own effects happen once. A run that has done its work
//     and crashes before its end is on record is followed by another one,
//     unless the Attempts are used up. Effects in ZooKeeper can be made by
//     [coord.Hold.Txn]; other resources can refuse the token of an earlier run.
//   - Without Keep and KeepLast, a server that lags behind may still show a
//     record that [Once.Forget] has deleted: a caller there gets the former
//     result.
//   - All who use a key should give the same options. Attempts are judged by
//     each client for itself, and the runs of clients with neither Keep nor
//     KeepLast are kept for ever, and do not count among the newest. A client
//     that finds a record of other options reports that, once
//     ([event.Differs]).
//   - While records are deleted, their jobs seem to run: TryDo can fail with
//     [coord.ErrBusy].
//   - With Keep and KeepLast, the log of a ledger numbers 2^31 runs in each of
//     its four directories; then Do fails with [coord.ErrSequenceExhausted].
//   - Callers that wait are granted a run in the order of their arrival; one
//     that comes after the end of the job does not wait.
//
// # When the session or connection fails
//
// A run lasts as long as its hold: over outages of T/3. If the hold is lost,
// the function's context ends, the end of the run is not on record, and Do
// fails with [coord.ErrLost]. A waiting caller keeps waiting. If a reply is
// lost, the client finds out whether the request took effect: once the end of a
// run is on record, its caller is told so, unless the caller's context ends
// before that is known ([coord.ErrUnconfirmed]).
//
// # Znodes
//
//	/jobs/keys/07                               container, one of 32, by the key's hash
//	/jobs/keys/07/v42                           container: the line of the job's lock
//	/jobs/keys/07/v42/record                    persistent: one line of JSON, then the result
//	/jobs/keys/07/v42/_c_<uuid>-lock-0000000003 ephemeral: runs the job
//	/jobs/log/2                                 persistent, one of 4, with Keep and KeepLast
//	/jobs/log/2/0000000041                      persistent: a run and its key, in order
//	/jobs/log/4                                 persistent: runs that went on when their turn came to be deleted
//	/jobs/guards/_c_<uuid>                      ephemeral, one for each end under way; idle ones are deleted
//
// A key is a node's name, escaped as in a URL; at most 200 bytes then. 100,000
// keys of that length are listed in 32 replies of some 650 kB each; the log is
// not listed.
//
// [Once.Remove] deletes all of it.
//
// # Cost
//
// A job that was done: one read. A run: 10 requests in 5 round trips, and up to
// 8 more where directories are missing, as for a new key. A run that is a
// client's first within the session timeout also makes a node in guards, which
// is deleted later. A client that waits: 8 requests; when the run ends, or the
// next one begins, all who wait are woken and read the record; when a run's
// client crashes, only the next in line does. With Keep or KeepLast, each call
// makes an empty write first, in one more round trip, to see the latest
// records; each run makes up to 10 more reads, in 2 more round trips, and 7
// requests for each record that it deletes. With Keep, or before another
// attempt, a client that has not written for a minute makes one write more, to
// learn the ensemble's time.
package once
