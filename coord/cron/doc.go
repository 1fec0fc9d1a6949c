// Package cron runs each slot of a schedule once, by any of the clients that
// have it.
//
// # What
//
// Every replica of a service runs the same schedule at the same path. For each
// slot, an instant that the schedule names, one of them calls its function:
//
//	c, err := cron.New(client, "/cron/report", schedule, cron.OnEnd(alert))
//	err = c.Run(ctx, func(ctx context.Context, s *cron.Slot) ([]byte, error) {
//		return nil, report(ctx, s.At)
//	})
//
// A [Schedule] has one method, as those of github.com/robfig/cron/v3 have it;
// [In] and [WallClock] read it by the clock of a time zone. The first client to
// come runs the slot. If it dies, another one takes its place.
//
// A slot is a job in a ledger of package once ([Cron.Ledger]), and its key is
// the instant in UTC, not the time at which a client looks at its clock. Beside
// the ledger, a mark says how far the schedule has come.
//
//   - By default at least once: a slot whose client died in the middle is run
//     again, until a function has returned, in time and whatever it returned.
//   - [Attempts] has failures repeated, and gives up after n attempts.
//   - Attempts(1, 0) is at most once: a slot whose client died is not run again.
//   - [CatchUp] says what becomes of slots for which nobody was there, [Skip] and
//     [MaxConcurrent] of slots that are due while one is under way: by default,
//     the last one of them is run as soon as possible.
//
// # Guarantees
//
//   - Slots are chosen, and without [MaxConcurrent] also begin, in the order of the
//     schedule. Each is begun or left out, exactly once, however much clocks
//     differ: the next one follows from the mark, not from a clock, which says
//     only when it is due.
//   - A slot is due by the clock of the client that is first, but never more
//     than a minute before the ensemble's clock says so
//     ([recipe.EnsembleTime]). So a client whose clock is wrong by hours
//     or years, in either direction, takes no slot from the others.
//   - A slot that is over is not begun again, even by a client whose clock is
//     behind or that was cut off, and even if its record was deleted.
//   - A slot is run by one client at a time, and at most as many slots at a
//     time as MaxConcurrent says, under the conditions that package coord states.
//   - With Attempts(n), the function is called n times at most, by all clients
//     together, in whatever way they end.
//   - Every call ends with its context, but for the function.
//
// # Not guaranteed
//
//   - When a slot begins: a client whose clock is ahead has it begin early, by
//     up to a minute. If the servers' clock is behind, slots begin late. If it
//     was ahead, and the clients' with it, the mark can lie in the future:
//     nothing is due until then. Each client reports that ([event.MarkAhead]),
//     as does [State]; [Cron.Rewind] mends it.
//   - That the function's own effects happen once: see package once. The token
//     of a [Slot] is for resources that can refuse an earlier attempt.
//   - All clients should use the same schedule and the same options. The first
//     client decides what is due and what is left out. Clients that [Describe]
//     their job report another one at the path.
//   - The first client of all begins with the slot after its arrival, by the
//     ensemble's clock.
//   - [State] counts the slots that were left out, but for the older ones where
//     more than 10,000 were missed at once.
//
// # When the session or connection fails
//
// A slot that is under way lasts as long as its hold: over outages of T/3. If
// the hold is lost, the function's context ends, and another client runs the
// slot again unless the [Attempts] are used up. Run goes on over lost sessions.
// A client whose function returned without an error before the hold was lost
// has run the slot; if the end could not be put on record ([OnEnd]), another
// client may run it again.
//
// # Znodes
//
//	/cron/report/mark                                  persistent: one line of JSON
//	/cron/report/runners/<digest>-<session>            ephemeral: see [Describe]
//	/cron/report/keys/07/2026-11-23T16:05:00Z/record   as in package once
//	/cron/report/log, /cron/report/guards              as in package once
//
// By default the records of the newest 100 runs are kept: [Keep], [KeepLast].
//
// [Cron.Remove] deletes all of it.
//
// # Cost
//
// A slot: 44 requests by the client that runs it, half of which delete the
// record of an old one, and 5 by each other client, which is told of the
// beginning and the end. A client may need one write more to learn the
// ensemble's time: before its first slot, and once a minute while its clock is
// ahead by more than that. Each client has a watch on the mark, and while
// another one runs a slot, on that one's node. Between slots nobody asks the
// servers for anything.
package cron
