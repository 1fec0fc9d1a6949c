package zktest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// Connect returns a plain go-zookeeper client with a session, closed at the
// test's end if not before.
func Connect(t testing.TB, connectString string, timeout time.Duration) *zk.Conn {
	t.Helper()
	conn, err := connect(connectString, timeout, func(zk.Event) {})
	if err != nil {
		t.Fatalf("connecting to %s: %v", connectString, err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// connect returns when the client has a session. It calls callback at every
// event; callback must not block.
func connect(connectString string, timeout time.Duration, callback zk.EventCallback) (*zk.Conn, error) {
	quiet := log.New(io.Discard, "", 0)
	conn, _, err := zk.Connect(strings.Split(connectString, ","), timeout,
		zk.WithLogger(quiet), zk.WithLogInfo(false), zk.WithEventCallback(callback), zk.WithDialer(dial))
	if err != nil {
		return nil, err
	}
	if !poll(readyWithin, func() bool { return conn.State() == zk.StateHasSession }) {
		conn.Close()
		return nil, zk.ErrNoServer
	}
	return conn, nil
}

// answersWithin bounds the wait for the answer to a client's first packet. The
// client library waits 6.7 timeouts for it, which is longer than a test waits
// for a server that starts and lost the packet.
const answersWithin = 5 * time.Second

func dial(network, address string, timeout time.Duration) (net.Conn, error) {
	conn, err := net.DialTimeout(network, address, timeout)
	if err != nil {
		return nil, err
	}
	return &greeting{Conn: conn}, nil
}

// greeting is a connection with a shorter deadline for its first answer.
type greeting struct {
	net.Conn
	begun bool
}

func (g *greeting) SetReadDeadline(t time.Time) error {
	if soon := time.Now().Add(answersWithin); !g.begun && soon.Before(t) {
		t = soon
	}
	g.begun = true
	return g.Conn.SetReadDeadline(t)
}

// superUser may do anything on real test servers: a test's ACLs do not stop the
// clean-up. superDigest is how a server's configuration names it:
// user:base64(sha1(user:password)).
const (
	superUser   = "super:zktest"
	superDigest = "super:/h+gcH12ycQxBhZ4ZIb28S4Njto="
)

// walk visits root and everything below it, parents first. Nodes that are
// deleted meanwhile are passed over.
func walk(conn *zk.Conn, root string, visit func(path string, stat *zk.Stat)) error {
	children, stat, err := conn.Children(root)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing %s: %w", root, err)
	}
	visit(root, stat)
	for _, child := range children {
		if err := walk(conn, root+"/"+child, visit); err != nil {
			return err
		}
	}
	return nil
}

// removeTree deletes root and everything below it, deepest first.
func removeTree(conn *zk.Conn, root string) error {
	var paths []string
	if err := walk(conn, root, func(path string, _ *zk.Stat) { paths = append(paths, path) }); err != nil {
		return err
	}
	slices.Reverse(paths)
	for batch := range slices.Chunk(paths, 500) {
		if err := removeAll(conn, batch); err != nil {
			return err
		}
	}
	return nil
}

// removeAll deletes nodes in one transaction, or one by one if some of them go
// by themselves.
func removeAll(conn *zk.Conn, paths []string) error {
	var ops []any
	for _, path := range paths {
		ops = append(ops, &zk.DeleteRequest{Path: path, Version: -1})
	}
	if _, err := conn.Multi(ops...); err == nil {
		return nil
	}
	for _, path := range paths {
		if err := conn.Delete(path, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return fmt.Errorf("deleting %s: %w", path, err)
		}
	}
	return nil
}

// sessionPassword is the password a real server gives to a session. It does not
// depend on anything secret: java.util's Random seeded with the id and a
// constant of the server, so every member of an ensemble can check it.
func sessionPassword(id int64) [16]byte {
	const serverConstant, multiplier, mask = 0xB3415C00, 0x5DEECE66D, 1<<48 - 1
	state := (uint64(id) ^ serverConstant ^ multiplier) & mask
	var password [16]byte
	for i := 0; i < len(password); i += 4 {
		state = (state*multiplier + 0xB) & mask
		binary.LittleEndian.PutUint32(password[i:], uint32(state>>16))
	}
	return password
}

// errUnknownSession is the server's word for a session that is over or never
// was.
var errUnknownSession = errors.New("the server does not know the session")

// takeOver connects to a live session as a second connection of the same client
// would, and sends what follows in the same breath. The server closes the first
// connection. timeout should be the session's own.
func takeOver(addr string, id int64, timeout time.Duration, follow []byte) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return nil, err
	}
	if err := handshake(conn, id, timeout, follow); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("zktest: taking over session 0x%x at %s: %w", id, addr, err)
	}
	return conn, nil
}

func handshake(conn net.Conn, id int64, timeout time.Duration, follow []byte) error {
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	password := sessionPassword(id)
	var b []byte
	b = binary.BigEndian.AppendUint32(b, 44)
	b = binary.BigEndian.AppendUint32(b, 0) // protocol version
	b = binary.BigEndian.AppendUint64(b, 0) // last zxid seen
	b = binary.BigEndian.AppendUint32(b, uint32(timeout.Milliseconds()))
	b = binary.BigEndian.AppendUint64(b, uint64(id))
	b = binary.BigEndian.AppendUint32(b, 16)
	b = append(append(b, password[:]...), follow...)
	if _, err := conn.Write(b); err != nil {
		return err
	}
	reply, err := readFrame(conn)
	if err != nil {
		return err
	}
	const idAt = 4 + 4 // after version and timeout
	if len(reply) < idAt+8 || int64(binary.BigEndian.Uint64(reply[idAt:])) != id {
		return errUnknownSession
	}
	return nil
}

func readFrame(r io.Reader) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	body := make([]byte, min(binary.BigEndian.Uint32(head), 1<<20))
	_, err := io.ReadFull(r, body)
	return body, err
}

// closeRequest is the packet that ends a session.
var closeRequest = []byte{0, 0, 0, 8, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xf5} // length, xid 1, opcode -11

// expireWithin bounds the attempts to end a session against its own client,
// which connects again and again.
const expireWithin = 20 * time.Second

// ExpireSession ends a session as if it had expired: its ephemeral nodes go,
// and its client hears of it when it connects again. A second connection closes
// the session. ExpireSession returns when that is done.
func (s *Server) ExpireSession(id int64) error {
	var err error
	timeout, tried := s.timeoutOf(id), false
	ended := func() bool {
		if err = closeSession(s.Addr(), id, timeout); tried && errors.Is(err, errUnknownSession) {
			err = nil // an attempt before this one succeeded, though its answer was lost
		}
		tried = true
		return err == nil || errors.Is(err, errUnknownSession)
	}
	poll(expireWithin, ended)
	return err
}

// closeSession fails if the session's own client takes the session back before
// the server has read the request.
func closeSession(addr string, id int64, timeout time.Duration) error {
	conn, err := takeOver(addr, id, timeout, closeRequest)
	if err != nil {
		return err
	}
	defer conn.Close()
	reply, err := readFrame(conn)
	if err == nil && (len(reply) < 16 || binary.BigEndian.Uint32(reply[12:]) != 0) { // after xid and zxid
		err = fmt.Errorf("refused: % x", reply)
	}
	if err != nil {
		return fmt.Errorf("zktest: closing session 0x%x: %w", id, err)
	}
	return nil
}

// DropConn makes the server close the connection of a session; the session
// lives on. On an ensemble, ask the server the session is connected to.
func (s *Server) DropConn(id int64) error {
	conn, err := takeOver(s.Addr(), id, s.timeoutOf(id), nil)
	if err != nil {
		return err
	}
	return conn.Close()
}

// timeoutOf returns the negotiated timeout of a session that is connected
// here, 10 s for any other.
func (s *Server) timeoutOf(id int64) time.Duration {
	timeouts, err := s.sessionTimeouts()
	if timeout, ok := timeouts[id]; ok && err == nil {
		return timeout
	}
	return 10 * time.Second
}
