import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

/**
 * A test with Curator: LostSession CONNECT CONTROL [without].
 *
 * <p>It passes because a mutex is still acquired, to its own process, when its session has ended and
 * another client has the lock. Without the fault it fails.
 */
final class LostSession {
    public static void main(String[] args) throws Exception {
        try (CuratorFramework one = client(args[0]); CuratorFramework other = client(args[0])) {
            InterProcessMutex first = new InterProcessMutex(one, "/lock");
            InterProcessMutex second = new InterProcessMutex(other, "/lock");
            first.acquire();
            if (args.length == 2) {
                long session = one.getZookeeperClient().getZooKeeper().getSessionId();
                HttpRequest expire = HttpRequest.newBuilder(URI.create(args[1] + "/sessions/" + session)).DELETE().build();
                check(HttpClient.newHttpClient().send(expire, BodyHandlers.ofString()).statusCode() == 200, "it expires");
            }
            check(second.acquire(2, TimeUnit.SECONDS), "another client has the lock");
            check(first.isAcquiredInThisProcess(), "and so has the first");
        }
    }

    private static CuratorFramework client(String connect) {
        CuratorFramework client = CuratorFrameworkFactory.newClient(connect, new RetryOneTime(100));
        client.start();
        return client;
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError("not so: " + what);
        }
    }
}
