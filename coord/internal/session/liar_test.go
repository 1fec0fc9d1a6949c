package session_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/internal/servers"
	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
	"github.com/zkcoord/zkcoord/internal/virtual"
	"github.com/zkcoord/zkcoord/zkembed"
)

// liar stands between a client and a server, and changes the body of the next
// reply to a request like the given one.
type liar struct {
	mu     sync.Mutex
	op     int32
	change func(body []byte) []byte
}

func (l *liar) lie(op int32, change func(body []byte) []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.op, l.change = op, change
}

type liarConn struct {
	net.Conn
	*liar
	in    *bufio.Reader
	asked map[int32]int32 // the operation of each number
	left  []byte
}

func (c *liarConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	for b := p; len(b) >= 12; b = b[4+binary.BigEndian.Uint32(b):] {
		c.asked[int32(binary.BigEndian.Uint32(b[4:]))] = int32(binary.BigEndian.Uint32(b[8:]))
	}
	c.mu.Unlock()
	return c.Conn.Write(p)
}

func (c *liarConn) Read(p []byte) (int, error) {
	if len(c.left) == 0 {
		head, err := c.in.Peek(4)
		if err != nil {
			return 0, err
		}
		frame := make([]byte, 4+binary.BigEndian.Uint32(head))
		if _, err := io.ReadFull(c.in, frame); err != nil {
			return 0, err
		}
		c.mu.Lock()
		if xid := int32(binary.BigEndian.Uint32(frame[4:])); xid > 0 && c.change != nil && c.asked[xid] == c.op {
			frame = append(frame[:20], c.change(frame[20:])...)
			binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
			c.change = nil
		}
		c.mu.Unlock()
		c.left = frame
	}
	n := copy(p, c.left)
	c.left = c.left[n:]
	return n, nil
}

// F58: each reply that the session reads, cut short at every length, and some
// replies to another request.
func TestF58AReplyThatIsNotWholeFailsItsCallAndTheConnectionAndNothingElse(t *testing.T) {
	virtual.Test(t, func(t *testing.T) {
		server, err := zkembed.Start(zkembed.WithAddr(""))
		require.NoError(t, err)
		defer server.Close()
		l := &liar{}
		k, err := session.NewKeeper(session.Config{
			Timeout: 10 * time.Second, MaxPacket: wire.DefaultMaxPacket, Log: slog.New(slog.DiscardHandler),
			Config: servers.Config{
				Servers: []string{server.Addr()},
				Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
					conn, err := server.DialContext(ctx, network, addr)
					return &liarConn{Conn: conn, liar: l, in: bufio.NewReader(conn), asked: map[int32]int32{}}, err
				},
			},
			Notify: func(session.Change, *session.Session) {},
		})
		require.NoError(t, err)
		ctx := t.Context()
		defer k.Close(context.Background())
		s, err := k.Session(ctx)
		require.NoError(t, err)
		acl := []zk.ACL{{Perms: 31, Scheme: "world", ID: "anyone"}}
		ops := []wire.Op{
			{Kind: wire.OpCreate, Path: "/t", ACL: acl},
			{Kind: wire.OpSet, Path: "/t", Version: -1},
			{Kind: wire.OpCheck, Path: "/t", Version: -1},
			{Kind: wire.OpDelete, Path: "/t", Version: -1},
		}
		gone := func(w *session.Watch, err error) error {
			if err == nil {
				fired := session.NewWaker()
				w.Tell(fired)
				require.NoError(t, server.DropConn(s.ID()))
				<-fired
			}
			return err
		}
		for _, call := range []struct {
			name string
			op   int32
			make func() error
		}{
			{"create", 1, func() error {
				_, _, err := s.Create("/node-", []byte("data"), zk.FlagEphemeralSequential, acl)
				return err
			}},
			{"exists", 3, func() error { _, err := s.Exists(ctx, "/"); return err }},
			{"get", 4, func() error { _, err := s.Get(ctx, "/zookeeper"); return err }},
			{"list", 12, func() error { _, err := s.Children(ctx, "/"); return err }},
			{"watch", 4, func() error { return gone(s.Watches.Data(ctx, "/zookeeper/quota")) }},
			{
				"watch the list", 12, func() error {
					return gone(s.Watches.Await(ctx, s.Watches.Begin(session.Children, "/zookeeper")))
				},
			},
			{"transaction", 14, func() error { _, err := s.Txn(ctx, ops); return err }},
			{"refused transaction", 14, func() error {
				_, err := s.Txn(ctx, append(ops, wire.Op{Kind: wire.OpCheck, Path: "/none"}))
				if err == zk.ErrNoNode {
					return nil
				}
				return err
			}},
		} {
			length, id := 1, s.ID()
			for cut := 0; cut < length; cut++ {
				l.lie(call.op, func(body []byte) []byte {
					length = len(body)
					return body[:cut]
				})
				require.ErrorIs(t, call.make(), wire.ErrConnection, "%s: %d bytes", call.name, cut)
				require.NoError(t, call.make(), call.name)
			}
			require.Greater(t, length, 4, call.name)
			require.Equal(t, id, s.ID())
			require.NoError(t, s.Err())
		}
		for name, change := range map[string]func(body []byte) []byte{
			"another node": func(body []byte) []byte { return append(binary.BigEndian.AppendUint32(nil, 2), "/x"...) },
			"a child":      func(body []byte) []byte { return append(binary.BigEndian.AppendUint32(nil, 8), "/node-/x"...) },
			"no node":      func(body []byte) []byte { return binary.BigEndian.AppendUint32(nil, 0) },
			"no length":    func(body []byte) []byte { return binary.BigEndian.AppendUint32(nil, 1<<32-1) },
			"longer":       func(body []byte) []byte { body[3]++; return body },
		} {
			l.lie(1, change)
			_, _, err := s.Create("/node-", nil, zk.FlagEphemeralSequential, acl)
			require.ErrorIs(t, err, wire.ErrConnection, name)
		}
	})
}
