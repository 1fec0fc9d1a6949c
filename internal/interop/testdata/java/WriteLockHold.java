import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.recipes.lock.LockListener;
import org.apache.zookeeper.recipes.lock.WriteLock;

/**
 * A contender by ZooKeeper's own WriteLock.
 *
 * <p>A WriteLock whose predecessor goes between its listing and its watch waits for ever, and all behind
 * it: so a wait that is longer than a second asks it again. One that finds its node after the reply to
 * the create was lost takes it for another's, and waits for itself: so its session is given up.
 */
final class WriteLockHold extends PlainHold {
    private final Semaphore acquired = new Semaphore(0);
    private WriteLock lock;

    private WriteLockHold(String[] args) throws Exception {
        super(args);
    }

    public static void main(String[] args) throws Exception {
        new WriteLockHold(args).serve();
    }

    @Override
    protected void open() {
        lock = new WriteLock(client, path + "/lock", Ids.OPEN_ACL_UNSAFE, new LockListener() {
            @Override
            public void lockAcquired() {
                acquired.release();
            }

            @Override
            public void lockReleased() {}
        });
    }

    @Override
    protected boolean acquire(int milliseconds) throws Exception {
        acquired.drainPermits();
        for (int left = milliseconds; left > 0; left -= 1000) {
            lock.lock();
            if (!lock.getId().startsWith("/")) {
                throw new KeeperException.ConnectionLossException();
            }
            if (acquired.tryAcquire(Math.min(left, 1000), TimeUnit.MILLISECONDS)) {
                return true;
            }
        }
        return false;
    }

    @Override
    protected void release() {
        lock.unlock();
    }
}
