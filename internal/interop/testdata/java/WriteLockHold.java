import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.recipes.lock.LockListener;
import org.apache.zookeeper.recipes.lock.WriteLock;

/**
 * A contender by ZooKeeper's own WriteLock, driven by lines: WriteLockHold CONNECT PATH NAME SESSION.
 *
 * <p>It knows the commands "rounds N" and "quit" of Hold, and works in a round as Hold does. A WriteLock
 * whose predecessor goes between its listing and its watch waits for ever, and all behind it: so it is
 * asked again every second.
 */
final class WriteLockHold {
    private final String path;
    private final String name;
    private final ZooKeeper client;
    private final WriteLock lock;
    private final Semaphore acquired = new Semaphore(0);

    private WriteLockHold(String connect, String path, String name, int sessionSeconds) throws Exception {
        this.path = path;
        this.name = name;
        CountDownLatch connected = new CountDownLatch(1);
        client = new ZooKeeper(connect, sessionSeconds * 1000, event -> {
            if (event.getState() == Watcher.Event.KeeperState.SyncConnected) {
                connected.countDown();
            }
        });
        if (!connected.await(15, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no connection to " + connect);
        }
        for (String node : new String[] {path, path + "/lock", path + "/turns"}) {
            try {
                client.create(node, new byte[0], Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            } catch (KeeperException.NodeExistsException e) {
                // another contender was first
            }
        }
        lock = new WriteLock(client, path + "/lock", Ids.OPEN_ACL_UNSAFE, new LockListener() {
            @Override
            public void lockAcquired() {
                acquired.release();
            }

            @Override
            public void lockReleased() {}
        });
    }

    public static void main(String[] args) throws Exception {
        WriteLockHold hold = new WriteLockHold(args[0], args[1], args[2], Integer.parseInt(args[3]));
        System.out.println("ready");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null && !line.equals("quit"); line = commands.readLine()) {
            System.out.println(hold.rounds(Integer.parseInt(line.split(" ")[1])));
            System.out.flush();
        }
        hold.client.close();
    }

    private String rounds(int count) throws Exception {
        for (int i = 0; i < count; i++) {
            acquired.drainPermits();
            lock.lock();
            for (int tries = 0; !acquired.tryAcquire(1, TimeUnit.SECONDS); tries++) {
                if (tries == 60) {
                    throw new IllegalStateException("no turn within a minute");
                }
                lock.lock();
            }
            try {
                client.create(path + "/inside", name.getBytes(), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            } catch (KeeperException.NodeExistsException e) {
                return "overlap " + new String(client.getData(path + "/inside", false, null));
            }
            String turns = new String(client.getData(path + "/turns", false, null));
            client.setData(path + "/turns", (turns + name + "\n").getBytes(), -1);
            client.delete(path + "/inside", -1);
            lock.unlock();
        }
        return "done " + count;
    }
}
