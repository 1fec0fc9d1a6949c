import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.api.CuratorWatcher;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.zookeeper.Watcher.Event.EventType;

/** Curator's cache and one-shot watches, over a lost connection too. */
final class WatchChecks {
    private WatchChecks() {}

    static void cache(Checks.Section s) throws Exception {
        CuratorFramework a = s.client();
        CuratorFramework b = s.client();
        b.create().creatingParentsIfNeeded().forPath(s.path + "/tree/old", "0".getBytes());
        List<String> seen = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch started = new CountDownLatch(1);
        try (CuratorCache cache = CuratorCache.build(a, s.path + "/tree")) {
            int cut = s.path.length() + "/tree".length();
            cache.listenable().addListener(CuratorCacheListener.builder()
                    .forCreates(node -> seen.add("+" + node.getPath().substring(cut)))
                    .forChanges((old, node) ->
                            seen.add("=" + node.getPath().substring(cut) + new String(node.getData())))
                    .forDeletes(node -> seen.add("-" + node.getPath().substring(cut)))
                    .forInitialized(started::countDown).build());
            cache.start();
            s.check(started.await(Checks.WAIT_MS, TimeUnit.MILLISECONDS), "the cache tells when it is complete");
            s.equal(cache.size(), 2, "it holds what was there");
            seen.clear();
            b.create().forPath(s.path + "/tree/new", "1".getBytes());
            b.create().forPath(s.path + "/tree/new/deep", "2".getBytes());
            expect(s, seen, "+/new", "it hears of a new child");
            expect(s, seen, "+/new/deep", "and of a new grandchild");
            b.setData().forPath(s.path + "/tree/new/deep", "3".getBytes());
            expect(s, seen, "=/new/deep3", "and of a change");
            b.delete().forPath(s.path + "/tree/new/deep");
            expect(s, seen, "-/new/deep", "and of a deletion");
            String data = cache.get(s.path + "/tree/old").map(node -> new String(node.getData())).orElse(null);
            s.equal(data, "0", "it answers reads");

            reconnect(s, a);
            b.setData().forPath(s.path + "/tree/old", "4".getBytes());
            expect(s, seen, "=/old4", "it still hears of changes after a lost connection");
        }
    }

    private static void expect(Checks.Section s, List<String> seen, String event, String sentence) throws Exception {
        s.until(() -> seen.contains(event), sentence + " (" + event + ")");
        s.check(true, sentence);
    }

    /** Cuts the client's connection and returns when it has another one to the same session. */
    private static void reconnect(Checks.Section s, CuratorFramework client) throws Exception {
        CountDownLatch back = new CountDownLatch(1);
        client.getConnectionStateListenable().addListener((c, state) -> {
            if (state == ConnectionState.RECONNECTED) {
                back.countDown();
            }
        });
        long session = client.getZookeeperClient().getZooKeeper().getSessionId();
        s.cutConnection(client);
        s.until(() -> back.getCount() == 0, "a new connection");
        long next = client.getZookeeperClient().getZooKeeper().getSessionId();
        s.equal(next, session, "a new connection keeps the session");
    }

    private static CuratorWatcher note(List<String> seen, String what) {
        return event -> {
            if (event.getType() != EventType.None) { // the connection's own events
                seen.add(what + event.getType());
            }
        };
    }

    /** One-shot watches, which the client sets again on its next connection. */
    static void watches(Checks.Section s) throws Exception {
        CuratorFramework a = s.client();
        CuratorFramework b = s.client();
        b.create().creatingParentsIfNeeded().forPath(s.path + "/kept", "0".getBytes());
        b.create().forPath(s.path + "/dir");
        List<String> seen = Collections.synchronizedList(new ArrayList<>());
        a.getData().usingWatcher(note(seen, "data ")).forPath(s.path + "/kept");
        a.checkExists().usingWatcher(note(seen, "exists ")).forPath(s.path + "/none");
        a.getChildren().usingWatcher(note(seen, "children ")).forPath(s.path + "/dir");
        reconnect(s, a);
        b.setData().forPath(s.path + "/kept", "1".getBytes());
        expect(s, seen, "data NodeDataChanged", "a data watch outlives its connection");
        b.create().forPath(s.path + "/none");
        expect(s, seen, "exists NodeCreated", "an exists watch outlives its connection");
        b.create().forPath(s.path + "/dir/x");
        expect(s, seen, "children NodeChildrenChanged", "a children watch outlives its connection");
        s.equal(seen.size(), 3, "each is told once");
    }
}
