package interop

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func init() {
	zktest.RegisterChild("turns", takeTurns)
	zktest.RegisterChild("zk-lock", takeTurnsByZKLock)
}

// oneNode is in a dialect's place: the lock is one node.
const oneNode = "one node"

// taker is this module's contender with the command "turn" of
// testdata/java/PlainHold.java. What its lock does outlives a connection. After
// a request of the turn itself that may yet be carried out, it ends its session
// as the others do: none is carried out from then on.
type taker struct {
	*peer
	args    []string
	acquire acquiring
}

func takeTurns(args []string) {
	var t taker
	t.args = args
	zktest.ExitOn(t.begin())
	t.serve(func(_ string, number int) (answer string, err error) {
		answer, err = t.turn(fmt.Sprintf("%s-%d", t.name, number))
		if answer == "again" {
			_ = t.client.Close(t.ctx)
			err = t.begin()
		}
		return answer, err
	})
}

func (t *taker) begin() (err error) {
	dialect := coord.Dialect(t.args[4])
	if t.peer, err = newPeer(append(slices.Clone(t.args[:4]), string(coord.Curator))); err != nil {
		return err
	}
	if dialect == oneNode {
		n, err := lock.NewNode(t.client, t.path+"/lock")
		t.acquire = n.Acquire
		return err
	}
	m, err := lock.New(t.client, t.path+"/lock", lock.Dialect(dialect))
	t.acquire = m.Acquire
	return err
}

func (t *taker) turn(entry string) (answer string, err error) {
	if answer, err := t.peer.acquire(t.acquire, ownTurn); answer != "held" || err != nil {
		return "", fmt.Errorf("no turn: %q, %w", answer, err)
	}
	overlap, err := t.note(entry)
	switch {
	case overlap != "":
		return "overlap " + overlap, err
	case errors.Is(err, coord.ErrDisconnected), errors.Is(err, coord.ErrSessionExpired):
		return "again", nil
	case err != nil:
		return "", err
	}
	return "noted", recipe.Retry(t.ctx, t.client, t.hold.Release)
}

// note is what a turn does while holding.
func (t *taker) note(entry string) (overlap string, err error) {
	_, err = t.client.Txn(t.ctx, coord.EphemeralOp(t.path+"/inside", []byte(entry)))
	if errors.Is(err, coord.ErrNodeExists) {
		other, _, err := t.client.Get(t.ctx, t.path+"/inside")
		return string(other), err
	}
	if err != nil {
		return "", err
	}
	turns, _, err := t.client.Get(t.ctx, t.path+"/turns")
	if err == nil {
		_, err = t.client.Set(t.ctx, t.path+"/turns", append(turns, entry+"\n"...), -1)
	}
	if err == nil {
		err = t.client.Delete(t.ctx, t.path+"/inside", -1)
	}
	return "", err
}

// zkLock takes turns by go-zookeeper's own lock. What fails under it ends its
// session, for such a lock can be used no more.
type zkLock struct {
	servers, path, name string
	timeout             time.Duration
	conn                *zk.Conn
	lock                *zk.Lock
}

func takeTurnsByZKLock(args []string) {
	timeout, err := time.ParseDuration(args[3] + "s")
	zktest.ExitOn(err)
	l := &zkLock{servers: args[0], path: args[1], name: args[2], timeout: timeout}
	zktest.ExitOn(l.begin())
	fmt.Println("ready")
	for commands := bufio.NewScanner(os.Stdin); commands.Scan() && commands.Text() != "quit"; {
		overlap, err := l.turn(l.name + "-" + strings.TrimPrefix(commands.Text(), "turn "))
		switch {
		case overlap != "":
			fmt.Println("overlap " + overlap)
		case err != nil:
			zktest.ExitOn(l.begin())
			fmt.Println("again")
		default:
			fmt.Println("noted")
		}
	}
	l.conn.Close()
}

// begin ends the session, if there is one, which takes a connection, and begins
// another.
func (l *zkLock) begin() (err error) {
	if l.conn != nil {
		for _, _, err := l.conn.Exists("/"); err != nil; _, _, err = l.conn.Exists("/") {
			time.Sleep(20 * time.Millisecond)
		}
		l.conn.Close()
	}
	l.conn, _, err = zk.Connect(strings.Split(l.servers, ","), l.timeout, zk.WithLogInfo(false), zk.WithLogger(silent{}))
	if err != nil {
		return err
	}
	l.lock = zk.NewLock(l.conn, l.path+"/lock", zk.WorldACL(zk.PermAll))
	return nil
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func (l *zkLock) turn(entry string) (overlap string, err error) {
	if err := l.lock.Lock(); err != nil {
		return "", err
	}
	_, err = l.conn.Create(l.path+"/inside", []byte(entry), zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	if errors.Is(err, zk.ErrNodeExists) {
		other, _, err := l.conn.Get(l.path + "/inside")
		return string(other), err
	}
	if err != nil {
		return "", err
	}
	turns, _, err := l.conn.Get(l.path + "/turns")
	if err == nil {
		_, err = l.conn.Set(l.path+"/turns", append(turns, entry+"\n"...), -1)
	}
	if err == nil {
		err = l.conn.Delete(l.path+"/inside", -1)
	}
	if err == nil {
		err = l.lock.Unlock()
	}
	return "", err
}
