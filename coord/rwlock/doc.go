// Package rwlock is a shared lock on a ZooKeeper path: readers hold it
// together, a writer by itself.
//
// # What
//
// A [Lock] is for state that many read and few change, such as a configuration
// in files, or a directory that is replaced as a whole. [Lock.AcquireRead] and
// [Lock.AcquireWrite] return a [coord.Hold]; [Lock.DoRead] and [Lock.DoWrite]
// are the recommended way in:
//
//	err := l.DoWrite(ctx, func(ctx context.Context, h *coord.Hold) error {
//		return publish(ctx, h.Token())
//	})
//
// A writer that goes on as a reader calls [Downgrade]. The other way round does
// not exist: two readers that both wanted to become writers would wait for each
// other. It is not re-entrant, unless made so ([Reentrant]).
//
// # Guarantees
//
//   - Those of package coord: the hold ends before a claim that it excludes can
//     be granted; nothing is left behind; tokens of writers grow.
//   - All stand in one line, in the order of their arrival at the server. A
//     reader waits for the nearest writer before it and for no other: never for
//     a reader, never for a writer that came later. A writer waits for all
//     before it. So neither side starves.
//   - When a writer goes, all the readers right behind it hold together.
//   - A downgrade has no gap: one transaction puts a read node in the place of
//     the write node. Readers right behind get in, a writer does not.
//   - A write inside of a read, which its context shows, fails with
//     [coord.ErrInvalid] instead of a deadlock: release the read hold first,
//     acquire the write, and read again, for others may have written in
//     between. Or acquire the write in the first place, and downgrade.
//
// # Not guaranteed
//
//   - As with any lock: a holder that is paused beyond the session timeout may
//     go on for a moment after it wakes. A writer gives its [coord.Hold.Token]
//     to the resource, or writes by [coord.Hold.Txn]. A reader has no token:
//     its data may be out of date by the time it uses them.
//   - A goroutine that reads and then asks for a second read, without the
//     context of its hold, waits behind a writer that came in between, and
//     that writer for it: a deadlock. With the context, the second read is
//     refused then ([coord.ErrInvalid]), unless the lock is [Reentrant].
//   - Readers that come early do not overtake a writer that waits.
//
// # When the session or connection fails
//
// A waiter waits on and, if its session is over, joins again at the end of the
// line. A holder, of either side, keeps the lock over short outages and sees
// [coord.Hold.Done] when it can no longer be trusted. When the connection fails
// during a downgrade, the client finds out whether it took place; if the
// session is over, nothing is held.
//
// # Znodes
//
//	/config/lock                                       container
//	/config/lock/_c_<uuid>-__READ__0000000003          ephemeral, holds
//	/config/lock/_c_<uuid>-__READ__0000000004          ephemeral, holds
//	/config/lock/_c_<uuid>-__WRIT__0000000005          ephemeral, waits for …04
//	/config/lock/_c_<uuid>-__READ__0000000006          ephemeral, waits for …05
//
// After a downgrade a read node stands at the number its write node had. These
// are the names of Curator's InterProcessReadWriteLock, which excludes and is
// excluded (dialect [coord.Curator], the default). But before CURATOR-621 was
// fixed (thus in 5.4.0) Curator's own downgrade moves the reader to the end of
// the line, and a waiting writer is granted together with it.
//
// With [coord.Kazoo] the names are those of Kazoo's ReadLock and WriteLock,
// <hex>__rlock__<number> and <hex>__lock__<number>. In Kazoo 2.8 a reader waits
// for later writers, too (its issue 649, fixed since): two of its own
// contenders are enough for a deadlock, which others then wait for.
//
// A mutex of package lock at the same path counts as a writer. Only this module
// sees both: Curator's lock does not see a mutex, and Kazoo's plain Lock does
// not see readers.
//
// # Cost
//
// Uncontended, either side: create and list together, then delete: 3 requests
// in 2 round trips (4 requests when held for more than 20 ms). A waiter: a read
// of the node it waits for, in one more round trip, one of its node when that
// lasts, and one listing when the other has gone. When a writer goes, the
// readers right behind it wake and no others; when readers go, only the writer
// that waits for the last of them does. Try on a busy lock: 1 read. Downgrade:
// 1 request. Inside of a hold: none.
package rwlock
