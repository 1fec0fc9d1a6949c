import java.io.PrintStream;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.KeeperException;

/**
 * The frame of the Curator programs: sections of checks, clients, background tasks.
 *
 * <p>Output, one line per check: ok TAB section TAB sentence. A failing section prints fail TAB
 * section TAB reason, the others still run, and the exit status is 1. Nothing here waits without a
 * deadline.
 */
final class Checks {
    static final int WAIT_MS = 15_000; // longest wait for anything that has to happen
    static final int SECTION_MS = 45_000; // longest life of a section
    static final int RUN_MS = 90_000; // longest life of the whole program
    static final int AT_ONCE = 5; // sections
    static final int SESSION_MS = 10_000; // session timeout asked for

    private static final PrintStream OUT = System.out;

    /** One group of checks. */
    interface Body {
        void run(Section s) throws Exception;
    }

    /** Something awaited. */
    interface Condition {
        boolean holds() throws Exception;
    }

    /** A check did not hold. */
    @SuppressWarnings("serial")
    static final class Failed extends Exception {
        Failed(String reason) {
            super(reason);
        }
    }

    /** A call running in a daemon thread, with its result or error. */
    static final class Task<T> {
        private final CompletableFuture<T> future = new CompletableFuture<>();

        Task(Callable<T> call) {
            Thread thread = new Thread(() -> {
                try {
                    future.complete(call.call());
                } catch (Throwable error) {
                    future.completeExceptionally(error);
                }
            });
            thread.setDaemon(true);
            thread.start();
        }

        boolean pending() {
            return !future.isDone();
        }

        T result(String what) throws Exception {
            return result(what, WAIT_MS);
        }

        T result(String what, int milliseconds) throws Exception {
            try {
                return future.get(milliseconds, TimeUnit.MILLISECONDS);
            } catch (TimeoutException e) {
                throw new Failed(what + ": still waiting after " + milliseconds + " ms");
            } catch (ExecutionException e) {
                if (e.getCause() instanceof Exception cause) {
                    throw cause;
                }
                throw e;
            }
        }
    }

    /** What one group of checks is given: a path of its own, clients, checks. */
    static final class Section implements AutoCloseable {
        final String name;
        final String path;
        private final String connect;
        private final List<CuratorFramework> clients = new ArrayList<>();

        Section(String name, String connect, String root) {
            this.name = name;
            this.connect = connect;
            this.path = root + "/" + name;
        }

        CuratorFramework client() throws Exception {
            CuratorFramework client =
                    CuratorFrameworkFactory.newClient(connect, SESSION_MS, WAIT_MS, new RetryOneTime(100));
            clients.add(client);
            client.start();
            if (!client.blockUntilConnected(WAIT_MS, TimeUnit.MILLISECONDS)) {
                throw new Failed("no connection to " + connect + " within " + WAIT_MS + " ms");
            }
            return client;
        }

        /** Ends the session of a client at the server: to the client it is an expiry. */
        void endSession(CuratorFramework client) throws Exception {
            try (RawConnection raw = new RawConnection(connect, client.getZookeeperClient().getZooKeeper())) {
                raw.closeSession();
            }
        }

        /** Makes the server close the client's connection; the session goes on. */
        void cutConnection(CuratorFramework client) throws Exception {
            new RawConnection(connect, client.getZookeeperClient().getZooKeeper()).close();
        }

        void check(boolean holds, String sentence) throws Failed {
            if (!holds) {
                throw new Failed("not so: " + sentence);
            }
            say("ok", name, sentence);
        }

        void equal(Object got, Object want, String sentence) throws Failed {
            if (!Objects.equals(got, want)) {
                throw new Failed("not so: " + sentence + " (got " + got + ", want " + want + ")");
            }
            say("ok", name, sentence);
        }

        void raises(Class<? extends Exception> kind, Callable<?> call, String sentence) throws Exception {
            Object value;
            try {
                value = call.call();
            } catch (Exception error) {
                if (!kind.isInstance(error)) {
                    throw error;
                }
                say("ok", name, sentence);
                return;
            }
            throw new Failed("not so: " + sentence + " (no " + kind.getSimpleName() + ", but " + value + ")");
        }

        /** Waits for a condition; not a check by itself. */
        void until(Condition condition, String what) throws Exception {
            long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(WAIT_MS);
            while (!condition.holds()) {
                if (System.nanoTime() > deadline) {
                    throw new Failed(what + ": not within " + WAIT_MS + " ms");
                }
                Thread.sleep(10);
            }
        }

        @Override
        public void close() {
            clients.forEach(CuratorFramework::close);
        }
    }

    /** The number of children, 0 where there is no node. */
    static int children(CuratorFramework client, String path) throws Exception {
        try {
            return client.getChildren().forPath(path).size();
        } catch (KeeperException.NoNodeException e) {
            return 0; // not yet made, or a container that was reaped
        }
    }

    /** The node's data, null where there is no node. */
    static String text(CuratorFramework client, String path) throws Exception {
        try {
            return new String(client.getData().forPath(path));
        } catch (KeeperException.NoNodeException e) {
            return null;
        }
    }

    private final Map<String, Body> sections = new LinkedHashMap<>();

    Checks add(String name, Body body) {
        sections.put(name, body);
        return this;
    }

    /** Runs the sections, a few at a time since most of their time is waiting, and ends the process. */
    void run(String connect, String root) throws InterruptedException {
        ExecutorService pool = Executors.newFixedThreadPool(AT_ONCE);
        AtomicBoolean failed = new AtomicBoolean();
        sections.forEach((name, body) -> pool.execute(() -> {
            try {
                new Task<>(() -> {
                    try (Section section = new Section(name, connect, root)) {
                        body.run(section);
                    }
                    return null;
                }).result("the section", SECTION_MS);
            } catch (Exception error) {
                failed.set(true);
                say("fail", name, error.getClass().getSimpleName() + ": " + error.getMessage());
                error.printStackTrace();
            }
        }));
        pool.shutdown();
        boolean ended = pool.awaitTermination(RUN_MS, TimeUnit.MILLISECONDS);
        Runtime.getRuntime().halt(ended && !failed.get() ? 0 : 1); // a section that hangs must not hold the process
    }

    private static synchronized void say(String verdict, String name, String sentence) {
        OUT.println(verdict + "\t" + name + "\t" + sentence.replace('\n', ' '));
        OUT.flush();
    }
}
