import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;

/**
 * Curator's side of a recipe that it shares with others, driven by lines: Peer CONNECT PATH NAME SESSION RECIPE [N].
 *
 * <p>The recipe is at PATH/shared, the session's timeout SESSION seconds. Commands and answers, one line each:
 *
 * <pre>
 * RECIPE fixed N: InterProcessSemaphoreV2 with N leases; RECIPE counted N: with a SharedCount at PATH/shared/limit,
 * which is N unless it is there already
 *   acquire MS   held | busy
 *   release      released
 *   limit        N
 *   rounds N     done N | overlap K
 * RECIPE latch: LeaderLatch
 *   stand        standing
 *   await MS     held | busy
 *   leader       the leader's id
 *   release      released
 * RECIPE barrier: DistributedBarrier
 *   set          set
 *   remove       removed
 *   wait MS      open | closed
 * quit           ends the session and the process
 * </pre>
 *
 * <p>A round acquires a lease, creates an ephemeral node in PATH/inside, counts those there are, deletes it, and
 * releases. More than the limit are an overlap.
 */
final class Peer {
    private static final int ROUND_S = 60; // longest wait for a lease

    private final String path;
    private final String name;
    private final CuratorFramework client;
    private final SharedCount count;
    private final int fixed;
    private final InterProcessSemaphoreV2 semaphore;
    private final DistributedBarrier barrier;
    private LeaderLatch latch;
    private Lease lease;

    private Peer(String connect, String path, String name, int sessionSeconds, String recipe, int n) throws Exception {
        this.path = path;
        this.name = name;
        client = CuratorFrameworkFactory.newClient(connect, sessionSeconds * 1000, 15_000, new RetryOneTime(100));
        client.start();
        if (!client.blockUntilConnected(15, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no connection to " + connect);
        }
        try {
            client.create().creatingParentsIfNeeded().forPath(path + "/inside", new byte[0]);
        } catch (KeeperException.NodeExistsException e) {
            // another was first
        }
        String shared = path + "/shared";
        fixed = n;
        count = recipe.equals("counted") ? new SharedCount(client, shared + "/limit", n) : null;
        if (count != null) {
            count.start();
            semaphore = new InterProcessSemaphoreV2(client, shared, count);
        } else {
            semaphore = recipe.equals("fixed") ? new InterProcessSemaphoreV2(client, shared, n) : null;
        }
        barrier = new DistributedBarrier(client, shared);
    }

    public static void main(String[] args) throws Exception {
        int n = args.length > 5 ? Integer.parseInt(args[5]) : 0;
        Peer peer = new Peer(args[0], args[1], args[2], Integer.parseInt(args[3]), args[4], n);
        System.out.println("ready");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null && !line.equals("quit"); line = commands.readLine()) {
            System.out.println(peer.answer(line.split(" ")));
            System.out.flush();
        }
        if (peer.count != null) {
            peer.count.close();
        }
        peer.client.close();
    }

    private String answer(String[] command) throws Exception {
        long number = command.length > 1 ? Long.parseLong(command[1]) : 0;
        switch (command[0]) {
            case "acquire":
                lease = semaphore.acquire(number, TimeUnit.MILLISECONDS);
                return lease != null ? "held" : "busy";
            case "limit":
                return String.valueOf(count.getCount());
            case "rounds":
                return rounds(number);
            case "stand":
                latch = new LeaderLatch(client, path + "/shared", name);
                latch.start();
                return "standing";
            case "await":
                return latch.await(number, TimeUnit.MILLISECONDS) ? "held" : "busy";
            case "leader":
                return latch.getLeader().getId();
            case "release":
                return release();
            case "set":
                barrier.setBarrier();
                return "set";
            case "remove":
                barrier.removeBarrier();
                return "removed";
            case "wait":
                return barrier.waitOnBarrier(number, TimeUnit.MILLISECONDS) ? "open" : "closed";
            default:
                throw new IllegalArgumentException("unknown command " + command[0]);
        }
    }

    private String release() throws Exception {
        if (latch != null) {
            latch.close();
            latch = null;
        } else {
            lease.close();
        }
        return "released";
    }

    private String rounds(long rounds) throws Exception {
        for (int i = 0; i < rounds; i++) {
            Lease held = semaphore.acquire(ROUND_S, TimeUnit.SECONDS);
            if (held == null) {
                throw new IllegalStateException("no lease within " + ROUND_S + " s");
            }
            String node = path + "/inside/" + name + "-" + i;
            client.create().withMode(CreateMode.EPHEMERAL).forPath(node);
            int inside = client.getChildren().forPath(path + "/inside").size();
            client.delete().forPath(node);
            held.close();
            if (inside > (count != null ? count.getCount() : fixed)) {
                return "overlap " + inside;
            }
        }
        return "done " + rounds;
    }
}
