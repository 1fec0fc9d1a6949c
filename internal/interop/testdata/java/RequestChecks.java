import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.curator.framework.CuratorFramework;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooDefs.Perms;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;

/** Requests of ZooKeeper's own Java client that no recipe here makes. */
final class RequestChecks {
    private RequestChecks() {}

    static void reads(Checks.Section s) throws Exception {
        CuratorFramework client = s.client();
        ZooKeeper zk = client.getZookeeperClient().getZooKeeper();
        client.create().creatingParentsIfNeeded().forPath(s.path + "/a/b/c", "deep".getBytes());
        client.create().withMode(CreateMode.EPHEMERAL).forPath(s.path + "/e1");
        client.create().withMode(CreateMode.EPHEMERAL).forPath(s.path + "/a/e2");

        List<String> ephemerals = new ArrayList<>(zk.getEphemerals());
        Collections.sort(ephemerals);
        s.equal(ephemerals, List.of(s.path + "/a/e2", s.path + "/e1"), "a session's ephemeral nodes are listed");
        s.equal(zk.getEphemerals(s.path + "/a"), List.of(s.path + "/a/e2"), "and those below a path");
        s.equal(zk.getAllChildrenNumber(s.path), 5, "all nodes below a path are counted");

        List<OpResult> results = zk.multi(List.of(
                Op.getData(s.path + "/a/b/c"), Op.getChildren(s.path + "/a/b"), Op.getData(s.path + "/none")));
        s.equal(new String(((OpResult.GetDataResult) results.get(0)).getData()), "deep", "a multi-read reads data");
        s.equal(((OpResult.GetChildrenResult) results.get(1)).getChildren(), List.of("c"), "and children");
        s.equal(((OpResult.ErrorResult) results.get(2)).getErr(), KeeperException.Code.NONODE.intValue(),
                "and answers each operation for itself");

        s.check(zk.whoAmI().stream().anyMatch(id -> id.getAuthScheme().equals("ip")), "the server knows who asks");
        s.check(zk.getConfig(false, null) != null, "the configuration node is there");
    }

    static void acls(Checks.Section s) throws Exception {
        CuratorFramework client = s.client();
        ZooKeeper zk = client.getZookeeperClient().getZooKeeper();
        zk.addAuthInfo("digest", "user:secret".getBytes());
        client.create().creatingParentsIfNeeded().forPath(s.path);
        String node = zk.create(s.path + "/mine", new byte[0], Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT);
        List<ACL> acl = zk.getACL(node, new Stat());
        s.equal(acl.get(0).getId().getScheme(), "digest", "the creator's list names a digest");
        Stat stat = zk.setACL(node, Arrays.asList(new ACL(Perms.READ, new Id("world", "anyone")), acl.get(0)), 0);
        s.equal(stat.getAversion(), 1, "a new list counts its version");
        s.raises(KeeperException.BadVersionException.class,
                () -> zk.setACL(node, Ids.OPEN_ACL_UNSAFE, 0), "and the version is checked");
        CuratorFramework stranger = s.client();
        s.equal(stranger.getData().forPath(node).length, 0, "a stranger may read when the list says so");
        s.raises(KeeperException.NoAuthException.class,
                () -> stranger.setData().forPath(node, new byte[1]), "but not write");
        s.raises(KeeperException.InvalidACLException.class, () -> zk.create(
                s.path + "/bad", new byte[0], Arrays.asList(new ACL(Perms.ALL, new Id("digest", ""))), CreateMode.PERSISTENT),
                "a senseless list is refused");
        zk.delete(node, -1);
    }

    static void persistentWatches(Checks.Section s) throws Exception {
        CuratorFramework client = s.client();
        ZooKeeper zk = client.getZookeeperClient().getZooKeeper();
        client.create().creatingParentsIfNeeded().forPath(s.path + "/top");
        List<String> plain = Collections.synchronizedList(new ArrayList<>());
        List<String> deep = Collections.synchronizedList(new ArrayList<>());
        Watcher plainWatcher = event -> plain.add(event.getType() + " " + event.getPath().substring(s.path.length()));
        Watcher deepWatcher = event -> deep.add(event.getType() + " " + event.getPath().substring(s.path.length()));
        // One connection has one mode per path (ZooKeeper 3.8), so the plain watch is another client's.
        ZooKeeper other = s.client().getZookeeperClient().getZooKeeper();
        other.addWatch(s.path + "/top", plainWatcher, AddWatchMode.PERSISTENT);
        zk.addWatch(s.path + "/top", deepWatcher, AddWatchMode.PERSISTENT_RECURSIVE);
        for (String data : List.of("1", "2")) {
            zk.setData(s.path + "/top", data.getBytes(), -1);
        }
        client.create().forPath(s.path + "/top/x");
        client.delete().forPath(s.path + "/top/x");
        zk.getData(s.path + "/top", false, null); // every event comes before these answers
        other.getData(s.path + "/top", false, null);
        s.until(() -> deep.size() >= 4 && plain.size() >= 4, "the events");
        s.equal(deep, List.of("NodeDataChanged /top", "NodeDataChanged /top", "NodeCreated /top/x", "NodeDeleted /top/x"),
                "a recursive watch stays and sees all below");
        s.equal(plain, List.of("NodeDataChanged /top", "NodeDataChanged /top", "NodeChildrenChanged /top",
                "NodeChildrenChanged /top"), "a persistent watch stays and sees its node");
    }

    static void removedWatches(Checks.Section s) throws Exception {
        CuratorFramework client = s.client();
        ZooKeeper zk = client.getZookeeperClient().getZooKeeper();
        client.create().creatingParentsIfNeeded().forPath(s.path);
        List<EventType> seen = Collections.synchronizedList(new ArrayList<>());
        Watcher watcher = event -> seen.add(event.getType());
        Watcher other = event -> {};
        zk.getData(s.path, watcher, null);
        s.raises(KeeperException.NoWatcherException.class,
                () -> { zk.removeWatches(s.path, other, Watcher.WatcherType.Data, false); return null; },
                "a watch that was not set cannot be removed");
        zk.removeWatches(s.path, watcher, Watcher.WatcherType.Data, false);
        s.until(() -> seen.equals(List.of(EventType.DataWatchRemoved)), "the removal");
        s.check(true, "a removed watch is told so");
        zk.setData(s.path, new byte[1], -1);
        zk.getData(s.path, false, null); // an event would have come before this answer
        s.equal(seen, List.of(EventType.DataWatchRemoved), "and hears no more");

        zk.addWatch(s.path, watcher, AddWatchMode.PERSISTENT_RECURSIVE);
        zk.removeWatches(s.path, watcher, Watcher.WatcherType.Any, false);
        s.until(() -> seen.size() == 2, "the second removal");
        client.create().forPath(s.path + "/x");
        zk.getData(s.path, false, null);
        s.equal(seen.size(), 2, "a recursive watch is removed");
    }
}
