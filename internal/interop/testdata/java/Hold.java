import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Comparator;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.KeeperException;

/**
 * A contender for one InterProcessMutex, driven by lines: Hold CONNECT PATH NAME SESSION.
 *
 * <p>The mutex is PATH/lock, the session's timeout SESSION seconds. Commands and answers, one line each:
 *
 * <pre>
 * acquire MS   held | busy
 * release      released
 * ask          asking: the first in line was asked to let go
 * asked MS     asked | unasked: whether our hold was
 * rounds N     done N | overlap NAME
 * quit         ends the session and the process
 * </pre>
 *
 * <p>A round acquires, creates PATH/inside (which exists only while somebody is inside, so finding
 * it is an overlap), appends NAME to the data of PATH/turns by an unconditional read, modify, write
 * (so an update without exclusion gets lost), removes PATH/inside and releases.
 */
final class Hold {
    private static final int ROUND_MS = 60_000; // longest wait for a turn

    private final String path;
    private final String name;
    private final CuratorFramework client;
    private final InterProcessMutex mutex;
    private CountDownLatch asked = new CountDownLatch(1);

    private Hold(String connect, String path, String name, int sessionSeconds) throws Exception {
        this.path = path;
        this.name = name;
        client = CuratorFrameworkFactory.newClient(connect, sessionSeconds * 1000, 15_000, new RetryOneTime(100));
        client.start();
        if (!client.blockUntilConnected(15, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no connection to " + connect);
        }
        try {
            client.create().creatingParentsIfNeeded().forPath(path + "/turns", new byte[0]);
        } catch (KeeperException.NodeExistsException e) {
            // another contender was first
        }
        mutex = new InterProcessMutex(client, path + "/lock");
    }

    public static void main(String[] args) throws Exception {
        Hold hold = new Hold(args[0], args[1], args[2], Integer.parseInt(args[3]));
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
            case "acquire":
                return acquire(Integer.parseInt(command[1])) ? "held" : "busy";
            case "release":
                mutex.release();
                return "released";
            case "rounds":
                return rounds(Integer.parseInt(command[1]));
            case "ask":
                Revoker.attemptRevoke(client, first());
                return "asking";
            case "asked":
                return asked.await(Integer.parseInt(command[1]), TimeUnit.MILLISECONDS) ? "asked" : "unasked";
            default:
                throw new IllegalArgumentException("unknown command " + command[0]);
        }
    }

    private boolean acquire(int milliseconds) throws Exception {
        CountDownLatch next = new CountDownLatch(1);
        asked = next;
        mutex.makeRevocable(revoked -> next.countDown()); // for one hold
        return mutex.acquire(milliseconds, TimeUnit.MILLISECONDS);
    }

    private String first() throws Exception {
        Comparator<String> bySequence = Comparator.comparing(name -> name.substring(name.length() - 10));
        return path + "/lock/" + client.getChildren().forPath(path + "/lock").stream().min(bySequence).orElseThrow();
    }

    private String rounds(int count) throws Exception {
        for (int i = 0; i < count; i++) {
            if (!acquire(ROUND_MS)) {
                throw new IllegalStateException("no turn within " + ROUND_MS + " ms");
            }
            try {
                client.create().forPath(path + "/inside", name.getBytes());
            } catch (KeeperException.NodeExistsException e) {
                return "overlap " + inside();
            }
            String turns = new String(client.getData().forPath(path + "/turns"));
            client.setData().forPath(path + "/turns", (turns + name + "\n").getBytes());
            client.delete().forPath(path + "/inside");
            mutex.release();
        }
        return "done " + count;
    }

    private String inside() throws Exception {
        try {
            return new String(client.getData().forPath(path + "/inside"));
        } catch (KeeperException.NoNodeException e) {
            return "(gone)";
        }
    }
}
