import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.Socket;
import org.apache.zookeeper.ZooKeeper;

/**
 * A bare connection that claims another client's session, as a reconnect does: the server closes
 * the client's own connection.
 */
final class RawConnection implements AutoCloseable {
    private static final int CLOSE_SESSION = -11;

    private final Socket socket;
    private final DataInputStream in;
    private final DataOutputStream out;

    RawConnection(String connect, ZooKeeper zk) throws IOException {
        String first = connect.split("[,/]")[0];
        int colon = first.lastIndexOf(':');
        socket = new Socket(first.substring(0, colon), Integer.parseInt(first.substring(colon + 1)));
        socket.setSoTimeout(Checks.WAIT_MS);
        in = new DataInputStream(socket.getInputStream());
        out = new DataOutputStream(socket.getOutputStream());
        byte[] password = zk.getSessionPasswd();
        out.writeInt(4 + 8 + 4 + 8 + 4 + password.length + 1);
        out.writeInt(0); // protocol version
        out.writeLong(0); // last zxid seen
        out.writeInt(Checks.SESSION_MS);
        out.writeLong(zk.getSessionId());
        out.writeInt(password.length);
        out.write(password);
        out.writeBoolean(false); // not read-only
        out.flush();
        in.readNBytes(in.readInt());
    }

    /** Ends the session and returns when the server has confirmed it. */
    void closeSession() throws IOException {
        out.writeInt(8);
        out.writeInt(1); // xid
        out.writeInt(CLOSE_SESSION);
        out.flush();
        in.readNBytes(in.readInt());
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
