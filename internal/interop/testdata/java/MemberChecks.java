import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.data.Stat;

/** Curator's leader latch, double barrier and persistent node. */
final class MemberChecks {
    private MemberChecks() {}

    static void leaderLatch(Checks.Section s) throws Exception {
        CuratorFramework a = s.client();
        CuratorFramework b = s.client();
        CuratorFramework c = s.client();
        LeaderLatch one = new LeaderLatch(a, s.path, "one");
        LeaderLatch two = new LeaderLatch(b, s.path, "two");
        LeaderLatch three = new LeaderLatch(c, s.path, "three");
        one.start();
        s.check(one.await(10, TimeUnit.SECONDS), "a lone candidate leads");
        two.start();
        s.until(() -> Checks.children(a, s.path) == 2, "the second candidate joins");
        three.start();
        s.until(() -> Checks.children(a, s.path) == 3, "the third candidate joins");
        s.equal(ids(one.getParticipants()), List.of("one", "two", "three"), "candidates are listed in their order");
        s.equal(three.getLeader().getId(), "one", "everybody names the same leader");
        s.check(one.hasLeadership() && !two.hasLeadership() && !three.hasLeadership(), "exactly one leads");

        one.close();
        s.check(two.await(10, TimeUnit.SECONDS), "the next leads when the leader resigns");
        s.check(!one.hasLeadership() && !three.hasLeadership(), "nobody else does");
        s.endSession(b);
        s.check(three.await(15, TimeUnit.SECONDS), "the next leads when the leader's session ends");
        s.until(() -> !two.hasLeadership(), "the old leader's end");
        s.check(true, "the old leader hears of it");
        s.until(() -> Checks.children(a, s.path) == 2, "the old leader stands again");
        s.equal(ids(three.getParticipants()), List.of("three", "two"), "the old leader stands again, behind the new");
        three.close();
        s.check(two.await(10, TimeUnit.SECONDS), "and leads when its turn comes");
        two.close();
        s.until(() -> Checks.children(a, s.path) == 0, "the nodes' end"); // a latch deletes in the background
        s.check(true, "nobody leaves a node");
    }

    private static List<String> ids(Collection<Participant> all) {
        return all.stream().map(Participant::getId).toList();
    }

    static void doubleBarrier(Checks.Section s) throws Exception {
        List<DistributedDoubleBarrier> members = new ArrayList<>();
        CuratorFramework watcher = s.client();
        for (int i = 0; i < 3; i++) {
            members.add(new DistributedDoubleBarrier(s.client(), s.path, 3));
        }
        Checks.Task<Boolean> first = entering(members.get(0));
        Checks.Task<Boolean> second = entering(members.get(1));
        s.until(() -> Checks.children(watcher, s.path) == 2, "two members arrive");
        s.check(first.pending() && second.pending(), "nobody enters before the last has come");
        s.check(members.get(2).enter(10, TimeUnit.SECONDS), "the last to come enters");
        s.check(first.result("enter") && second.result("enter"), "and so do the others");
        s.check(watcher.checkExists().forPath(s.path + "/ready") != null, "the round is marked ready");

        first = leaving(members.get(0));
        second = leaving(members.get(1));
        s.until(() -> Checks.children(watcher, s.path) < 4, "one starts to leave");
        s.check(first.pending() || second.pending(), "not everybody has left before the last does");
        s.check(members.get(2).leave(10, TimeUnit.SECONDS), "the last to leave leaves");
        s.check(first.result("leave") && second.result("leave"), "and so do the others");
        s.equal(Checks.children(watcher, s.path), 0, "nothing is left");

        DistributedDoubleBarrier alone = new DistributedDoubleBarrier(s.client(), s.path + "-alone", 2);
        s.check(!alone.enter(200, TimeUnit.MILLISECONDS), "a member that stays alone ends at its timeout");
    }

    private static Checks.Task<Boolean> entering(DistributedDoubleBarrier member) {
        return new Checks.Task<>(() -> member.enter(Checks.WAIT_MS, TimeUnit.MILLISECONDS));
    }

    private static Checks.Task<Boolean> leaving(DistributedDoubleBarrier member) {
        return new Checks.Task<>(() -> member.leave(Checks.WAIT_MS, TimeUnit.MILLISECONDS));
    }

    static void persistentNode(Checks.Section s) throws Exception {
        CuratorFramework a = s.client();
        CuratorFramework b = s.client();
        PersistentNode node = new PersistentNode(a, CreateMode.EPHEMERAL, false, s.path + "/me", "v1".getBytes());
        node.start();
        s.check(node.waitForInitialCreate(10, TimeUnit.SECONDS), "the node is created");
        s.equal(new String(b.getData().forPath(s.path + "/me")), "v1", "with its data");
        b.delete().forPath(s.path + "/me");
        s.until(() -> b.checkExists().forPath(s.path + "/me") != null, "the node's return");
        s.check(true, "a deleted node comes back");
        node.setData("v2".getBytes());
        s.until(() -> "v2".equals(Checks.text(b, s.path + "/me")), "the new data");
        s.check(true, "its data is changed");
        long owner = b.checkExists().forPath(s.path + "/me").getEphemeralOwner();
        s.equal(owner, a.getZookeeperClient().getZooKeeper().getSessionId(), "it belongs to the session");
        s.endSession(a);
        s.until(() -> {
            Stat stat = b.checkExists().forPath(s.path + "/me");
            return stat != null && stat.getEphemeralOwner() != owner;
        }, "the node of the next session");
        s.equal(Checks.text(b, s.path + "/me"), "v2", "the client's next session makes it again");
        node.close();
        // In the background, if the reply to the create has not come yet.
        s.until(() -> b.checkExists().forPath(s.path + "/me") == null, "the node's end");
        s.check(true, "closing removes it");
    }
}
