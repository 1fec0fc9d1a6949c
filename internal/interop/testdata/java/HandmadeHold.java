import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.ZooDefs.Ids;

/**
 * A contender by a lock as one writes it by hand: HandmadeHold CONNECT PATH NAME SESSION PREFIX [FAULT].
 *
 * <p>Its claims are PREFIX and the sequence number; "{session}" in PREFIX is the number of the session.
 * Other names in the directory are other locks. FAULT is one that such locks have:
 *
 * <pre>
 * trusting   it holds when the one before it has gone, without looking again
 * by-name    it orders whole names
 * </pre>
 */
final class HandmadeHold extends PlainHold {
    private final String prefix;
    private final String fault;
    private String node;

    private HandmadeHold(String[] args) throws Exception {
        super(args);
        prefix = args[4];
        fault = args.length > 5 ? args[5] : "";
    }

    public static void main(String[] args) throws Exception {
        new HandmadeHold(args).serve();
    }

    @Override
    protected void open() {
        node = null;
    }

    @Override
    protected boolean acquire(int milliseconds) throws Exception {
        String dir = path + "/lock";
        if (node == null) {
            String begins = prefix.replace("{session}", Long.toString(client.getSessionId()));
            String made = client.create(dir + "/" + begins, new byte[0], Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL);
            node = made.substring(dir.length() + 1);
        }
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(milliseconds);
        while (true) {
            List<String> line = line(dir);
            int place = line.indexOf(node);
            if (place <= 0) {
                return place == 0;
            }
            CountDownLatch gone = new CountDownLatch(1);
            if (client.exists(dir + "/" + line.get(place - 1), event -> gone.countDown()) == null) {
                continue;
            }
            if (!gone.await(end - System.nanoTime(), TimeUnit.NANOSECONDS)) {
                return false;
            }
            if (fault.equals("trusting")) {
                return true;
            }
        }
    }

    private List<String> line(String dir) throws Exception {
        String common = prefix.replaceAll("\\{.*", "");
        Comparator<String> bySequence = Comparator.comparing(name -> name.substring(name.length() - 10));
        return client.getChildren(dir, false).stream().filter(name -> name.startsWith(common))
            .sorted(fault.equals("by-name") ? Comparator.naturalOrder() : bySequence).collect(Collectors.toList());
    }

    @Override
    protected void release() throws Exception {
        client.delete(path + "/lock/" + node, -1);
        node = null;
    }
}
