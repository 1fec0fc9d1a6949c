import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.data.Stat;

/**
 * A contender for one InterProcessReadWriteLock, driven by lines: RwlockHold CONNECT PATH NAME SESSION.
 *
 * <p>The lock is PATH/lock, the session's timeout SESSION seconds. Commands and answers, one line each:
 *
 * <pre>
 * read MS      held | busy
 * write MS     held | busy
 * downgrade    downgraded: the reader came before the writer went
 * release      released
 * rounds N     done N | overlap WHAT
 * quit         ends the session and the process
 * </pre>
 *
 * <p>Of three rounds the first writes, the second reads, and the third writes and then reads with a
 * gap in between. (Up to CURATOR-621, thus in 5.4.0, a downgrade takes a new place at the end of the
 * line, and whoever waits to write holds beside the reader: so no downgrade where a writer may wait.)
 * Who writes holds PATH/writing, finds PATH/reading empty, appends NAME to the data of PATH/turns by
 * an unconditional read, modify, write, and finds PATH/reading still empty. Who reads holds
 * PATH/reading/NAME, finds no PATH/writing, and sees the same version of PATH/turns twice.
 */
final class RwlockHold {
    private static final int ROUND_MS = 60_000; // longest wait for a turn

    private final String path;
    private final String name;
    private final CuratorFramework client;
    private final InterProcessReadWriteLock lock;
    private InterProcessMutex held;

    private RwlockHold(String connect, String path, String name, int sessionSeconds) throws Exception {
        this.path = path;
        this.name = name;
        client = CuratorFrameworkFactory.newClient(connect, sessionSeconds * 1000, 15_000, new RetryOneTime(100));
        client.start();
        if (!client.blockUntilConnected(15, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no connection to " + connect);
        }
        for (String node : List.of("/turns", "/reading")) {
            try {
                client.create().creatingParentsIfNeeded().forPath(path + node, new byte[0]);
            } catch (KeeperException.NodeExistsException e) {
                // another contender was first
            }
        }
        lock = new InterProcessReadWriteLock(client, path + "/lock");
    }

    public static void main(String[] args) throws Exception {
        RwlockHold hold = new RwlockHold(args[0], args[1], args[2], Integer.parseInt(args[3]));
        System.out.println("ready");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null && !line.equals("quit"); line = commands.readLine()) {
            System.out.println(hold.answer(line.split(" ")));
            System.out.flush();
        }
        hold.client.close();
    }

    private String answer(String[] command) throws Exception {
        switch (command[0]) {
            case "read":
                return acquire(lock.readLock(), Integer.parseInt(command[1]));
            case "write":
                return acquire(lock.writeLock(), Integer.parseInt(command[1]));
            case "downgrade":
                return downgrade();
            case "release":
                held.release();
                return "released";
            case "rounds":
                return rounds(Integer.parseInt(command[1]));
            default:
                throw new IllegalArgumentException("unknown command " + command[0]);
        }
    }

    private String acquire(InterProcessMutex side, int milliseconds) throws Exception {
        if (!side.acquire(milliseconds, TimeUnit.MILLISECONDS)) {
            return "busy";
        }
        held = side;
        return "held";
    }

    private String downgrade() throws Exception {
        lock.readLock().acquire();
        lock.writeLock().release();
        held = lock.readLock();
        return "downgraded";
    }

    private String rounds(int count) throws Exception {
        for (int i = 0; i < count; i++) {
            String overlap = "";
            if (i % 3 != 1) {
                turn(lock.writeLock());
                overlap = write();
            }
            if (i % 3 == 2 && overlap.isEmpty()) {
                held.release();
            }
            if (i % 3 != 0 && overlap.isEmpty()) {
                turn(lock.readLock());
                overlap = read();
            }
            if (!overlap.isEmpty()) {
                return "overlap " + overlap;
            }
            held.release();
        }
        return "done " + count;
    }

    private void turn(InterProcessMutex side) throws Exception {
        if (acquire(side, ROUND_MS).equals("busy")) {
            throw new IllegalStateException("no turn within " + ROUND_MS + " ms");
        }
    }

    private String write() throws Exception {
        try {
            client.create().withMode(CreateMode.EPHEMERAL).forPath(path + "/writing");
        } catch (KeeperException.NodeExistsException e) {
            return "writing";
        }
        List<String> before = client.getChildren().forPath(path + "/reading");
        byte[] turns = client.getData().forPath(path + "/turns"); // null if another contender made it so
        String more = (turns == null ? "" : new String(turns)) + name + "\n";
        client.setData().forPath(path + "/turns", more.getBytes());
        List<String> after = client.getChildren().forPath(path + "/reading");
        client.delete().forPath(path + "/writing");
        return before.isEmpty() && after.isEmpty() ? "" : "reading";
    }

    private String read() throws Exception {
        String reading = path + "/reading/" + name;
        client.create().withMode(CreateMode.EPHEMERAL).forPath(reading);
        boolean writing = client.checkExists().forPath(path + "/writing") != null;
        Stat before = client.checkExists().forPath(path + "/turns");
        Stat after = client.checkExists().forPath(path + "/turns");
        client.delete().forPath(reading);
        return writing || before.getVersion() != after.getVersion() ? "writing" : "";
    }
}
