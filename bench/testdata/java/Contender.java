import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryOneTime;

/** Curator's recipes under the tasks of package bench: its program.go has the protocol and the tasks. */
final class Contender {
    private static final int ITEM_SIZE = 100;
    private static final int BACKLOG = 100;

    private final Map<String, String> task = new HashMap<>();
    private final List<CuratorFramework> sessions = new ArrayList<>();
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final List<DistributedQueue<byte[]>> queues = new ArrayList<>();
    private final Grants grants = new Grants();
    private final AtomicLong consumed = new AtomicLong();
    private final List<DistributedDoubleBarrier> barriers = new ArrayList<>();
    private volatile boolean over;
    private volatile String failure;

    public static void main(String[] args) throws Exception {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        Contender current = null;
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String answer;
            try {
                if (line.startsWith("prepare ")) {
                    current = new Contender(line.split(" "));
                    current.prepare();
                    answer = "prepared";
                } else if (line.equals("run")) {
                    answer = "figures " + current.run();
                } else {
                    current.close();
                    answer = "closed";
                }
            } catch (Exception e) {
                answer = "error " + e.toString().replace('\n', ' ');
            }
            System.out.println(answer);
            System.out.flush();
        }
        System.exit(0);
    }

    private Contender(String[] words) {
        for (String word : words) {
            int cut = word.indexOf('=');
            if (cut > 0) {
                task.put(word.substring(0, cut), word.substring(cut + 1));
            }
        }
    }

    private int number(String key) {
        return Integer.parseInt(task.get(key));
    }

    private String path() {
        return task.get("path");
    }

    private void prepare() throws Exception {
        String[] addrs = task.get("addrs").split(",");
        for (int i = 0; i < number("sessions"); i++) {
            CuratorFramework session = CuratorFrameworkFactory.newClient(
                    addrs[i % addrs.length], number("timeout"), 15_000, new RetryOneTime(100));
            session.start();
            sessions.add(session);
        }
        for (CuratorFramework session : sessions) {
            if (!session.blockUntilConnected(15, TimeUnit.SECONDS)) {
                throw new IllegalStateException("no connection");
            }
        }
        switch (task.get("work")) {
            case "contend":
                contend();
                break;
            case "barrier":
                for (CuratorFramework session : sessions) {
                    barriers.add(new DistributedDoubleBarrier(session, path() + "/barrier", sessions.size()));
                }
                round();
                break;
            case "queue":
                queue();
                break;
            default: // wait
        }
    }

    private void contend() throws Exception {
        String shared = path() + "/shared";
        InterProcessMutex gate = new InterProcessMutex(sessions.get(0), shared);
        gate.acquire();
        for (int i = 0; i < sessions.size(); i++) {
            for (int k = 0; k < number("each"); k++) {
                String path = task.get("own").equals("true") ? path() + "/own-" + i + "-" + k : shared;
                InterProcessMutex mutex = new InterProcessMutex(sessions.get(i), path);
                work(() -> {
                    mutex.acquire();
                    grants.granted(path);
                    mutex.release();
                });
            }
        }
        Thread.sleep(number("settle"));
        gate.release();
    }

    private void queue() throws Exception {
        Semaphore room = new Semaphore(BACKLOG);
        for (int i = 0; i < sessions.size(); i++) {
            boolean consumer = i < number("each");
            DistributedQueue<byte[]> queue = QueueBuilder.builder(
                            sessions.get(i), consumer ? new Consumer(room) : null, new Bytes(), path() + "/queue")
                    .lockPath(path() + "/locks")
                    .buildQueue();
            queue.start();
            queues.add(queue);
            if (!consumer) {
                work(() -> {
                    room.acquire();
                    queue.put(new byte[ITEM_SIZE]);
                });
            }
        }
        Thread.sleep(number("settle"));
    }

    private interface Step {
        void run() throws Exception;
    }

    /** Repeats a step until the task is over. */
    private void work(Step step) {
        threads.submit(() -> {
            try {
                while (!over) {
                    step.run();
                }
            } catch (Exception e) {
                if (!over) {
                    failure = e.toString();
                }
            }
        });
    }

    private String run() throws Exception {
        String figures;
        long begun = System.nanoTime();
        switch (task.get("work")) {
            case "contend":
                grants.collect(true);
                Thread.sleep(number("during"));
                grants.collect(false);
                figures = "ops=" + grants.between.size() + " p50=" + median(grants.between);
                break;
            case "barrier":
                figures = rounds();
                break;
            case "queue":
                long before = consumed.get();
                Thread.sleep(number("during"));
                figures = "ops=" + (consumed.get() - before);
                break;
            default:
                new InterProcessMutex(sessions.get(0), path() + "/lock").acquire();
                figures = "ops=1";
        }
        if (failure != null) {
            throw new IllegalStateException(failure);
        }
        return figures + " seconds=" + (System.nanoTime() - begun) / 1e9;
    }

    private String rounds() throws Exception {
        List<Long> enters = new ArrayList<>();
        List<Long> leaves = new ArrayList<>();
        long end = System.nanoTime() + number("during") * 1_000_000L;
        while (System.nanoTime() < end) {
            long[] took = round();
            enters.add(took[0]);
            leaves.add(took[1]);
        }
        return "ops=" + enters.size() * sessions.size() + " enter=" + median(enters) + " leave=" + median(leaves);
    }

    private long[] round() throws Exception {
        long begun = System.nanoTime();
        together(DistributedDoubleBarrier::enter);
        long entered = System.nanoTime();
        together(DistributedDoubleBarrier::leave);
        return new long[] {entered - begun, System.nanoTime() - entered};
    }

    private interface Passage {
        void pass(DistributedDoubleBarrier barrier) throws Exception;
    }

    private void together(Passage passage) throws Exception {
        List<Callable<Void>> calls = new ArrayList<>();
        for (DistributedDoubleBarrier barrier : barriers) {
            calls.add(() -> {
                passage.pass(barrier);
                return null;
            });
        }
        for (Future<Void> done : threads.invokeAll(calls)) {
            done.get();
        }
    }

    private void close() throws Exception {
        over = true;
        threads.shutdownNow();
        for (DistributedQueue<byte[]> queue : queues) {
            queue.close();
        }
        threads.awaitTermination(5, TimeUnit.SECONDS);
        sessions.parallelStream().forEach(CuratorFramework::close);
    }

    /** Seconds. */
    private static double median(List<Long> times) {
        List<Long> sorted = new ArrayList<>(times);
        sorted.sort(null);
        return sorted.isEmpty() ? 0 : sorted.get(sorted.size() / 2) / 1e9;
    }

    /** The times from one grant on a path to the next. */
    private static final class Grants {
        private final Map<String, Long> last = new HashMap<>();
        private final List<Long> between = new ArrayList<>();
        private boolean on;

        synchronized void granted(String path) {
            long now = System.nanoTime();
            Long before = last.put(path, now);
            if (on && before != null) {
                between.add(now - before);
            }
        }

        synchronized void collect(boolean on) {
            this.on = on;
        }
    }

    private final class Consumer implements QueueConsumer<byte[]> {
        private final Semaphore room;

        Consumer(Semaphore room) {
            this.room = room;
        }

        @Override
        public void consumeMessage(byte[] item) {
            consumed.incrementAndGet();
            room.release();
        }

        @Override
        public void stateChanged(CuratorFramework client, ConnectionState state) {}
    }

    private static final class Bytes implements QueueSerializer<byte[]> {
        @Override
        public byte[] serialize(byte[] item) {
            return item;
        }

        @Override
        public byte[] deserialize(byte[] bytes) {
            return bytes;
        }
    }
}
