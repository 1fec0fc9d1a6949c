import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;

/**
 * A contender by a lock over ZooKeeper's plain client, driven by lines: CLASS CONNECT PATH NAME SESSION.
 *
 * <p>The lock is PATH/lock, the session's timeout SESSION seconds. Commands and answers, one line each:
 *
 * <pre>
 * acquire MS   held | busy: it stays in line
 * release      released
 * turn N       noted | again | overlap ENTRY
 * quit         ends the session and the process
 * </pre>
 *
 * <p>A turn acquires, creates the ephemeral node PATH/inside (finding it is an overlap), appends the
 * entry NAME-N to the data of PATH/turns by an unconditional read, modify, write (so an update without
 * exclusion gets lost), removes PATH/inside and releases. Where the connection or the session fails under
 * it, it begins a new session and answers "again": the entry may be noted or not.
 */
abstract class PlainHold {
    private static final int TURN_MS = 60_000; // longest wait for a turn

    protected final String path;
    protected ZooKeeper client;
    private final String connect;
    private final String name;
    private final int sessionMillis;

    protected PlainHold(String[] args) throws Exception {
        connect = args[0];
        path = args[1];
        name = args[2];
        sessionMillis = Integer.parseInt(args[3]) * 1000;
    }

    /** Begins with a new session, with no claim. */
    protected abstract void open();

    protected abstract boolean acquire(int milliseconds) throws Exception;

    protected abstract void release() throws Exception;

    protected final void serve() throws Exception {
        begin();
        for (String node : new String[] {path, path + "/lock", path + "/turns"}) {
            try {
                client.create(node, new byte[0], Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            } catch (KeeperException.NodeExistsException e) {
                // another contender was first
            }
        }
        System.out.println("ready");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null && !line.equals("quit"); line = commands.readLine()) {
            System.out.println(answer(line.split(" ")));
            System.out.flush();
        }
        client.close();
    }

    private void begin() throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        client = new ZooKeeper(connect, sessionMillis, event -> {
            if (event.getState() == Watcher.Event.KeeperState.SyncConnected) {
                connected.countDown();
            }
        });
        if (!connected.await(60, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no connection to " + connect);
        }
        open();
    }

    /** Ends the session, which takes a connection, and begins another. */
    private void beginAgain() throws Exception {
        while (client.getState().isAlive()) {
            try {
                client.exists("/", false);
                break;
            } catch (KeeperException e) {
                Thread.sleep(20);
            }
        }
        client.close();
        begin();
    }

    private String answer(String[] command) throws Exception {
        switch (command[0]) {
            case "acquire":
                return acquire(Integer.parseInt(command[1])) ? "held" : "busy";
            case "release":
                release();
                return "released";
            case "turn":
                try {
                    return turn(name + "-" + command[1]);
                } catch (KeeperException | RuntimeException e) {
                    if (!failed(e) && !failed(e.getCause())) {
                        throw e;
                    }
                    beginAgain();
                    return "again";
                }
            default:
                throw new IllegalArgumentException("unknown command " + command[0]);
        }
    }

    private static boolean failed(Throwable e) {
        return e instanceof KeeperException.ConnectionLossException || e instanceof KeeperException.SessionExpiredException;
    }

    private String turn(String entry) throws Exception {
        if (!acquire(TURN_MS)) {
            throw new AssertionError("no turn within a minute");
        }
        try {
            client.create(path + "/inside", entry.getBytes(), Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);
        } catch (KeeperException.NodeExistsException e) {
            return "overlap " + new String(client.getData(path + "/inside", false, null));
        }
        String turns = new String(client.getData(path + "/turns", false, null));
        client.setData(path + "/turns", (turns + entry + "\n").getBytes(), -1);
        client.delete(path + "/inside", -1);
        release();
        return "noted";
    }
}
