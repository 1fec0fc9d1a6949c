import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;

/** Curator's mutex, read/write lock and semaphore. */
final class LockChecks {
    private LockChecks() {}

    /** A mutex in a thread of its own, since Curator's holds belong to threads. */
    static final class Holder {
        final CountDownLatch release = new CountDownLatch(1);
        final Checks.Task<Boolean> acquired;
        final Checks.Task<Void> ended;

        Holder(InterProcessMutex mutex) {
            CountDownLatch tried = new CountDownLatch(1);
            boolean[] got = new boolean[1];
            ended = new Checks.Task<>(() -> {
                try {
                    got[0] = mutex.acquire(Checks.WAIT_MS, TimeUnit.MILLISECONDS);
                } finally {
                    tried.countDown();
                }
                release.await(Checks.WAIT_MS, TimeUnit.MILLISECONDS);
                mutex.release();
                return null;
            });
            acquired = new Checks.Task<>(() -> {
                tried.await();
                return got[0];
            });
        }

        void end() throws Exception {
            release.countDown();
            ended.result("a release");
        }
    }

    static void mutex(Checks.Section s) throws Exception {
        CuratorFramework a = s.client();
        CuratorFramework b = s.client();
        CuratorFramework c = s.client();
        InterProcessMutex first = new InterProcessMutex(a, s.path);
        InterProcessMutex second = new InterProcessMutex(b, s.path);
        s.check(first.acquire(10, TimeUnit.SECONDS), "a free mutex is acquired");
        s.check(first.acquire(10, TimeUnit.SECONDS), "its holder enters again");
        s.check(!second.acquire(200, TimeUnit.MILLISECONDS), "an acquire ends at its timeout");
        s.equal(Checks.children(a, s.path), 1, "an acquire that timed out leaves no node");

        Holder waiting = new Holder(second);
        s.until(() -> Checks.children(a, s.path) == 2, "the second joins");
        Holder last = new Holder(new InterProcessMutex(c, s.path));
        s.until(() -> Checks.children(a, s.path) == 3, "the third joins");
        s.equal(List.copyOf(first.getParticipantNodes()), sorted(a, s.path), "participants are listed in their order");
        first.release();
        s.check(first.isAcquiredInThisProcess() && waiting.acquired.pending(), "one release of two keeps the mutex");
        first.release();
        s.check(waiting.acquired.result("the second's turn"), "the next waiter acquires at the release");
        s.check(last.acquired.pending(), "and only the next");

        b.close();
        s.check(last.acquired.result("the third's turn"), "closing the holder's session passes the mutex on");
        Holder heir = new Holder(new InterProcessMutex(a, s.path));
        s.until(() -> Checks.children(a, s.path) == 2, "an heir joins");
        s.endSession(c);
        s.check(heir.acquired.result("the heir's turn"), "a session ended from elsewhere passes the mutex on");
        heir.end();
    }

    private static List<String> sorted(CuratorFramework client, String path) throws Exception {
        List<String> nodes = new ArrayList<>();
        for (String child : client.getChildren().forPath(path)) {
            nodes.add(path + "/" + child);
        }
        nodes.sort((x, y) -> x.substring(x.length() - 10).compareTo(y.substring(y.length() - 10)));
        return nodes;
    }

    static void revocation(Checks.Section s) throws Exception {
        CuratorFramework a = s.client();
        CuratorFramework b = s.client();
        InterProcessMutex mutex = new InterProcessMutex(a, s.path);
        CountDownLatch asked = new CountDownLatch(1);
        mutex.makeRevocable(revoked -> asked.countDown());
        s.check(mutex.acquire(10, TimeUnit.SECONDS), "a revocable mutex is acquired");
        String node = s.path + "/" + b.getChildren().forPath(s.path).get(0);
        Revoker.attemptRevoke(b, node);
        s.check(asked.await(Checks.WAIT_MS, TimeUnit.MILLISECONDS), "its holder is asked to let go");
        mutex.release();
        s.equal(Checks.children(b, s.path), 0, "and does");
    }

    static void readWriteLock(Checks.Section s) throws Exception {
        InterProcessReadWriteLock a = new InterProcessReadWriteLock(s.client(), s.path);
        InterProcessReadWriteLock b = new InterProcessReadWriteLock(s.client(), s.path);
        CuratorFramework c = s.client();
        Holder one = new Holder(a.readLock());
        Holder two = new Holder(b.readLock());
        s.check(one.acquired.result("a reader") && two.acquired.result("a reader"), "two readers hold together");
        Holder writer = new Holder(new InterProcessReadWriteLock(c, s.path).writeLock());
        s.until(() -> Checks.children(c, s.path) == 3, "the writer joins");
        Holder late = new Holder(new InterProcessReadWriteLock(s.client(), s.path).readLock());
        s.until(() -> Checks.children(c, s.path) == 4, "a late reader joins");
        one.end();
        s.check(writer.acquired.pending(), "the writer waits for the last reader");
        s.check(late.acquired.pending(), "a reader waits behind an earlier writer");
        two.end();
        s.check(writer.acquired.result("the writer's turn"), "the writer holds when the last reader has left");
        s.check(late.acquired.pending(), "the reader waits while the writer holds");
        writer.end();
        s.check(late.acquired.result("the late reader's turn"), "the reader holds when the writer has left");
        late.end();

        s.check(a.writeLock().acquire(10, TimeUnit.SECONDS), "a free lock is written");
        s.check(a.readLock().acquire(10, TimeUnit.SECONDS), "its writer may read");
        Holder reader = new Holder(b.readLock());
        s.until(() -> Checks.children(c, s.path) == 3, "another reader joins");
        s.check(reader.acquired.pending(), "another reader waits for the writer");
        a.writeLock().release();
        s.check(reader.acquired.result("the reader's turn"), "a writer that keeps reading lets readers in");
        s.check(!b.writeLock().acquire(200, TimeUnit.MILLISECONDS), "but no writer");
        a.readLock().release();
        reader.end();
        s.equal(Checks.children(c, s.path), 0, "nothing is left in the directory");
    }

    static void semaphore(Checks.Section s) throws Exception {
        CuratorFramework a = s.client();
        CuratorFramework b = s.client();
        CuratorFramework c = s.client();
        Lease one = new InterProcessSemaphoreV2(a, s.path, 2).acquire(10, TimeUnit.SECONDS);
        Lease two = new InterProcessSemaphoreV2(b, s.path, 2).acquire(10, TimeUnit.SECONDS);
        s.check(one != null && two != null, "two leases are granted");
        InterProcessSemaphoreV2 third = new InterProcessSemaphoreV2(c, s.path, 2);
        s.check(third.acquire(300, TimeUnit.MILLISECONDS) == null, "a third acquire ends at its timeout");
        s.equal(third.getParticipantNodes().size(), 2, "an acquire that timed out leaves no lease");
        s.equal(Checks.children(a, s.path + "/locks"), 0, "and no lock");

        Checks.Task<Lease> turn = new Checks.Task<>(() -> third.acquire(Checks.WAIT_MS, TimeUnit.MILLISECONDS));
        s.until(() -> Checks.children(a, s.path + "/leases") == 3, "the third waits in line");
        s.check(turn.pending(), "the third waits while both leases are taken");
        one.close();
        Lease granted = turn.result("the third's turn");
        s.check(granted != null, "a returned lease is granted to the waiter");

        Checks.Task<Lease> next = new Checks.Task<>(() ->
                new InterProcessSemaphoreV2(a, s.path, 2).acquire(Checks.WAIT_MS, TimeUnit.MILLISECONDS));
        s.until(() -> Checks.children(a, s.path + "/leases") == 3, "another waits in line");
        b.close();
        Lease heir = next.result("the next turn");
        s.check(heir != null, "the lease of a closed session is granted to the waiter");
        s.equal(third.getParticipantNodes().size(), 2, "two leases exist in the end");
        granted.close();
        heir.close();
        s.equal(Checks.children(a, s.path + "/leases"), 0, "returned leases leave no node");
    }
}
