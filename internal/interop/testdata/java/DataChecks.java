import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.api.transaction.CuratorTransactionResult;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.OpResult.ErrorResult;
import org.apache.zookeeper.data.Stat;

/** Curator's node kinds, transactions, counters and queue. */
final class DataChecks {
    private DataChecks() {}

    static void nodeKinds(Checks.Section s) throws Exception {
        CuratorFramework a = s.client();
        String made = a.create().creatingParentContainersIfNeeded().forPath(s.path + "/box/child", "x".getBytes());
        s.equal(made, s.path + "/box/child", "parents are made as containers");
        Stat box = a.checkExists().forPath(s.path + "/box");
        s.check(box.getNumChildren() == 1 && box.getEphemeralOwner() == 0, "a container looks like a plain node");
        a.create().withMode(CreateMode.CONTAINER).forPath(s.path + "/empty");
        s.check(a.checkExists().forPath(s.path + "/empty") != null, "a container is made by itself");

        Stat stat = new Stat();
        a.create().withTtl(60_000).storingStatIn(stat).withMode(CreateMode.PERSISTENT_WITH_TTL)
                .forPath(s.path + "/ttl", "t".getBytes());
        s.check(stat.getDataLength() == 1 && stat.getEphemeralOwner() == 0, "a TTL node is made");
        String numbered = a.create().withTtl(60_000).withMode(CreateMode.PERSISTENT_SEQUENTIAL_WITH_TTL)
                .forPath(s.path + "/ttl-");
        s.equal(numbered, s.path + "/ttl-0000000003", "a sequential TTL node is made");
        String guarded = a.create().withProtection().withMode(CreateMode.EPHEMERAL_SEQUENTIAL)
                .forPath(s.path + "/eph-");
        s.check(guarded.matches(".*/_c_[-0-9a-f]{36}-eph-0000000004"), "a protected node is made");
        s.raises(KeeperException.NoChildrenForEphemeralsException.class,
                () -> a.create().forPath(guarded + "/x"), "an ephemeral node takes no children");
        s.raises(KeeperException.NotEmptyException.class,
                () -> a.delete().forPath(s.path + "/box"), "a node with children stays");
        a.delete().deletingChildrenIfNeeded().forPath(s.path + "/box");
        s.check(a.checkExists().forPath(s.path + "/box") == null, "a subtree is deleted");

        // Left for the server to reap: a used container and a node whose TTL is over.
        String reap = s.path.substring(0, s.path.lastIndexOf('/')) + "/reap";
        a.create().creatingParentContainersIfNeeded().forPath(reap + "/container/child");
        a.delete().forPath(reap + "/container/child");
        a.create().withTtl(1).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath(reap + "/ttl");
        a.create().withTtl(3_600_000).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath(reap + "/ttl-later");
    }

    static void transaction(Checks.Section s) throws Exception {
        CuratorFramework a = s.client();
        a.create().creatingParentsIfNeeded().forPath(s.path, "v0".getBytes());
        a.create().forPath(s.path + "/old");
        List<CuratorTransactionResult> results = a.transaction().forOperations(
                a.transactionOp().create().forPath(s.path + "/new", "data".getBytes()),
                a.transactionOp().check().withVersion(0).forPath(s.path),
                a.transactionOp().setData().withVersion(0).forPath(s.path, "v1".getBytes()),
                a.transactionOp().delete().forPath(s.path + "/old"),
                a.transactionOp().create().withMode(CreateMode.PERSISTENT_SEQUENTIAL).forPath(s.path + "/n-"));
        s.equal(results.size(), 5, "a transaction returns each result");
        s.equal(results.get(0).getResultPath(), s.path + "/new", "with the created path");
        s.equal(results.get(2).getResultStat().getVersion(), 1, "with the new Stat");
        s.equal(results.get(4).getResultPath(), s.path + "/n-0000000002", "with the sequential name");
        s.equal(Checks.text(a, s.path), "v1", "its writes are there");

        try {
            a.transaction().forOperations(
                    a.transactionOp().create().forPath(s.path + "/never"),
                    a.transactionOp().setData().withVersion(7).forPath(s.path, "v2".getBytes()),
                    a.transactionOp().delete().forPath(s.path + "/new"));
            throw new Checks.Failed("a transaction with a bad version was accepted");
        } catch (KeeperException.BadVersionException e) {
            List<Integer> codes = e.getResults().stream().map(r -> ((ErrorResult) r).getErr()).toList();
            s.equal(codes, List.of(0, -103, -2), "a failed transaction tells which operation failed");
        }
        s.equal(Checks.text(a, s.path), "v1", "a failed transaction changes nothing");
        List<String> children = new ArrayList<>(a.getChildren().forPath(s.path));
        Collections.sort(children);
        s.equal(children, List.of("n-0000000002", "new"), "and creates and deletes nothing");
    }

    static void counters(Checks.Section s) throws Exception {
        List<Checks.Task<Void>> tasks = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            DistributedAtomicLong counter =
                    new DistributedAtomicLong(s.client(), s.path + "/long", new RetryNTimes(500, 5));
            tasks.add(new Checks.Task<>(() -> {
                for (int n = 0; n < 10; n++) {
                    if (!counter.increment().succeeded()) {
                        throw new Checks.Failed("an increment did not come through");
                    }
                }
                return null;
            }));
        }
        for (Checks.Task<Void> task : tasks) {
            task.result("increments");
        }
        CuratorFramework a = s.client();
        byte[] bytes = a.getData().forPath(s.path + "/long");
        s.check(Arrays.equals(bytes, new byte[] {0, 0, 0, 0, 0, 0, 0, 30}), "no increment of three clients is lost");

        try (SharedCount mine = new SharedCount(a, s.path + "/shared", 5);
                SharedCount other = new SharedCount(s.client(), s.path + "/shared", 0)) {
            mine.start();
            other.start();
            s.equal(other.getCount(), 5, "a shared count starts with its seed");
            s.check(mine.trySetCount(mine.getVersionedValue(), 258), "a shared count is set by its version");
            s.until(() -> other.getCount() == 258, "the new count");
            s.check(true, "the other client is told of it");
        }
    }

    static void queue(Checks.Section s) throws Exception {
        SimpleDistributedQueue one = new SimpleDistributedQueue(s.client(), s.path);
        SimpleDistributedQueue two = new SimpleDistributedQueue(s.client(), s.path);
        s.check(one.offer("a".getBytes()) && one.offer("b".getBytes()), "items are offered");
        s.equal(new String(two.take()), "a", "the oldest item comes first");
        s.equal(new String(one.take()), "b", "each item comes once");
        Checks.Task<byte[]> turn = new Checks.Task<>(() -> two.poll(Checks.WAIT_MS, TimeUnit.MILLISECONDS));
        one.offer("c".getBytes());
        s.equal(new String(turn.result("the waiting consumer")), "c", "a waiting consumer gets a new item");
    }
}
