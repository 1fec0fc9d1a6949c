import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedValue;
import org.apache.curator.framework.recipes.shared.VersionedValue;
import org.apache.curator.retry.RetryOneTime;

/**
 * Curator's side of what is shared without a lock, driven by lines: SharedPeer CONNECT PATH NAME SESSION.
 *
 * <p>Commands and answers, one line each; the recipes are at PATH/members, PATH/value, PATH/count and PATH/long:
 *
 * <pre>
 * join DATA      joined, as NAME, with a GroupMember
 * data DATA      changed
 * members        name=data, ... of all members
 * leave          left
 * seed TEXT      the value of a SharedValue that is TEXT unless it is there already
 * set TEXT       set | beaten, by a change since it was read
 * value          the value
 * count          the number of a SharedCount, 0 at first
 * add N          the sum
 * addlong N      the sum, of a DistributedAtomicLong
 * quit           ends the session and the process
 * </pre>
 */
final class SharedPeer {
    private final String path;
    private final String name;
    private final CuratorFramework client;
    private GroupMember member;
    private SharedValue value;
    private SharedCount count;

    private SharedPeer(String connect, String path, String name, int sessionSeconds) throws Exception {
        this.path = path;
        this.name = name;
        client = CuratorFrameworkFactory.newClient(connect, sessionSeconds * 1000, 15_000, new RetryOneTime(100));
        client.start();
        if (!client.blockUntilConnected(15, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no connection to " + connect);
        }
    }

    public static void main(String[] args) throws Exception {
        SharedPeer peer = new SharedPeer(args[0], args[1], args[2], Integer.parseInt(args[3]));
        System.out.println("ready");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null && !line.equals("quit"); line = commands.readLine()) {
            System.out.println(peer.answer(line.split(" ")));
            System.out.flush();
        }
        peer.client.close();
    }

    /** Changes the member's data, once its node has been made in the background. */
    private void change(byte[] data) throws InterruptedException {
        for (;;) {
            try {
                member.setThisData(data);
                return;
            } catch (IllegalStateException notYet) {
                Thread.sleep(10);
            }
        }
    }

    private String answer(String[] command) throws Exception {
        byte[] data = command.length > 1 ? command[1].getBytes(StandardCharsets.UTF_8) : new byte[0];
        switch (command[0]) {
            case "join":
                member = new GroupMember(client, path + "/members", name, data);
                member.start();
                return "joined";
            case "data":
                change(data);
                return "changed";
            case "members":
                return new TreeMap<>(member.getCurrentMembers()).entrySet().stream()
                        .map(e -> e.getKey() + "=" + new String(e.getValue(), StandardCharsets.UTF_8))
                        .collect(Collectors.joining(","));
            case "leave":
                member.close();
                return "left";
            case "seed":
                value = new SharedValue(client, path + "/value", data);
                value.start();
                return value();
            case "set":
                return value.trySetValue(value.getVersionedValue(), data) ? "set" : "beaten";
            case "value":
                return value();
            case "count":
                count = new SharedCount(client, path + "/count", 0);
                count.start();
                return String.valueOf(count.getCount());
            case "add":
                return add(Integer.parseInt(command[1]));
            case "addlong":
                while (true) {
                    AtomicValue<Long> sum = new DistributedAtomicLong(client, path + "/long", new RetryOneTime(100))
                            .add(Long.parseLong(command[1]));
                    if (sum.succeeded()) {
                        return String.valueOf(sum.postValue());
                    }
                }
            default:
                throw new IllegalArgumentException("unknown command " + command[0]);
        }
    }

    private String value() {
        return new String(value.getValue(), StandardCharsets.UTF_8);
    }

    private String add(int delta) throws Exception {
        while (true) {
            VersionedValue<Integer> now = count.getVersionedValue();
            if (count.trySetCount(now, now.getValue() + delta)) {
                return String.valueOf(now.getValue() + delta);
            }
        }
    }
}
