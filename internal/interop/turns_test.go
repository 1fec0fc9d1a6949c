package interop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func init() {
	zktest.RegisterChild("turns", takeTurns)
	zktest.RegisterChild("zk-lock", takeTurnsByZKLock)
}

// oneNode is in a dialect's place: the lock is one node.
const oneNode = "one node"

// takeTurns is this module's contender with the command "turn" of
// testdata/java/PlainHold.java. Its hold outlives a connection, so it notes its
// entry until it is noted, or the hold is lost.
func takeTurns(args []string) {
	dialect := coord.Dialect(args[4])
	args[4] = string(coord.Curator)
	p, err := newPeer(args)
	zktest.ExitOn(err)
	var acquire acquiring
	if dialect == oneNode {
		n, err := lock.NewNode(p.client, p.path+"/lock")
		zktest.ExitOn(err)
		acquire = n.Acquire
	} else {
		m, err := lock.New(p.client, p.path+"/lock", lock.Dialect(dialect))
		zktest.ExitOn(err)
		acquire = m.Acquire
	}
	p.serve(func(_ string, number int) (string, error) {
		return p.turn(acquire, fmt.Sprintf("%s-%d", p.name, number))
	})
}

func (p *peer) turn(acquire acquiring, entry string) (answer string, err error) {
	if answer, err := p.acquire(acquire, ownTurn); answer != "held" || err != nil {
		return "", fmt.Errorf("no turn: %q, %w", answer, err)
	}
	answer = "noted"
	err = p.client.Retry(p.hold.Context(p.ctx), func(ctx context.Context) error {
		overlap, err := p.note(ctx, entry)
		if overlap != "" {
			answer = "overlap " + overlap
		}
		return err
	})
	if p.hold.Err() != nil {
		return "again", nil
	}
	if err == nil {
		err = p.client.Retry(p.ctx, p.hold.Release)
	}
	return answer, err
}

// note is what a turn does while holding. It can be repeated.
func (p *peer) note(ctx context.Context, entry string) (overlap string, err error) {
	_, err = p.client.Txn(ctx, coord.EphemeralOp(p.path+"/inside", []byte(entry)))
	if errors.Is(err, coord.ErrNodeExists) {
		other, _, err := p.client.Get(ctx, p.path+"/inside")
		if err != nil || string(other) != entry {
			return string(other), err
		}
	} else if err != nil {
		return "", err
	}
	turns, _, err := p.client.Get(ctx, p.path+"/turns")
	if err == nil && !strings.HasSuffix("\n"+string(turns), "\n"+entry+"\n") {
		_, err = p.client.Set(ctx, p.path+"/turns", append(turns, entry+"\n"...), -1)
	}
	if err == nil {
		err = p.client.Delete(ctx, p.path+"/inside", -1)
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
