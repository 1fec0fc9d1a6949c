package interop

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// ownTurn is the longest wait for a turn in a round.
const ownTurn = time.Minute

// peer is this module's contender, for any recipe.
type peer struct {
	ctx        context.Context
	path, name string
	client     *coord.Client
	hold       *coord.Hold
}

// newPeer takes the arguments of a child process: connect string, path, name,
// session timeout in seconds, dialect. It makes the nodes that the contenders
// share; they are no containers, which would go when they are empty.
func newPeer(args []string, nodes ...string) (*peer, error) {
	seconds, err := strconv.Atoi(args[3])
	if err != nil {
		return nil, err
	}
	p := &peer{ctx: context.Background(), path: args[1], name: args[2]}
	p.client, err = coord.Open(p.ctx, args[0], coord.WithIdentity(p.name), coord.WithDialect(coord.Dialect(args[4])),
		coord.WithSessionTimeout(time.Duration(seconds)*time.Second))
	if err == nil {
		err = recipe.Retry(p.ctx, p.client, func(ctx context.Context) error { return p.client.EnsureDir(ctx, p.path) })
	}
	for _, node := range nodes {
		if err == nil {
			err = p.client.Create(p.ctx, p.path+node, []byte{})
		}
		if errors.Is(err, coord.ErrNodeExists) {
			err = nil
		}
	}
	return p, err
}

// serve answers commands of a word and perhaps a number, until it is told to
// quit.
func (p *peer) serve(do func(command string, number int) (string, error)) {
	fmt.Println("ready")
	for commands := bufio.NewScanner(os.Stdin); commands.Scan() && commands.Text() != "quit"; {
		words := append(strings.Fields(commands.Text()), "0")
		number, err := strconv.Atoi(words[1])
		zktest.ExitOn(err)
		answer, err := do(words[0], number)
		zktest.ExitOn(err)
		fmt.Println(answer)
	}
	zktest.ExitOn(p.client.Close(p.ctx))
}

type acquiring func(context.Context) (*coord.Hold, error)

func (p *peer) acquire(acquire acquiring, limit time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(p.ctx, limit)
	defer cancel()
	held, err := acquire(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "busy", nil
	case errors.Is(err, coord.ErrForeign):
		return "foreign", nil
	case err != nil:
		return "", err
	}
	p.hold = held
	return "held", nil
}

// rounds acquires, works and releases so many times, and answers whether a
// round met another contender.
func (p *peer) rounds(
	count int, round func(i int) (acquire acquiring, work func() (overlap string, err error)),
) (string, error) {
	for i := range count {
		acquire, work := round(i)
		if answer, err := p.acquire(acquire, ownTurn); answer != "held" || err != nil {
			return "", fmt.Errorf("no turn: %q, %w", answer, err)
		}
		if overlap, err := work(); overlap != "" || err != nil {
			return "overlap " + overlap, err
		}
		if err := p.hold.Release(p.ctx); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("done %d", count), nil
}

// noteTurn adds the name to the turns by a read and a write, of which two at a
// time would lose one.
func (p *peer) noteTurn() error {
	turns, _, err := p.client.Get(p.ctx, p.path+"/turns")
	if err == nil {
		_, err = p.client.Set(p.ctx, p.path+"/turns", append(turns, p.name+"\n"...), -1)
	}
	return err
}

// holder is the Go counterpart of testdata/java/Hold.java, with the same
// commands and answers. Beyond those it answers "foreign" when it met a
// contender of another dialect.
type holder struct {
	*peer
	mutex *lock.Mutex
}

// newHolder takes the arguments of [newPeer]; a dialect that is neither
// Curator's nor Kazoo's is the line's.
func newHolder(args ...string) (holder, error) {
	line := coord.Dialect(args[4])
	if line == coord.Curator || line == coord.Kazoo {
		line = ""
	} else {
		args[4] = string(coord.Curator)
	}
	p, err := newPeer(args, "/turns")
	if err != nil {
		return holder{}, err
	}
	mutex, err := lock.New(p.client, p.path+"/lock", lock.Dialect(line))
	return holder{p, mutex}, err
}

func holdIn(args []string) {
	h, err := newHolder(args...)
	zktest.ExitOn(err)
	h.serve(h.do)
}

func (h holder) do(command string, number int) (string, error) {
	limit := time.Duration(number) * time.Millisecond
	switch command {
	case "acquire":
		return h.acquire(h.mutex.Acquire, limit)
	case "release":
		return "released", h.hold.Release(h.ctx)
	case "rounds":
		return h.rounds(number, func(int) (acquiring, func() (string, error)) { return h.mutex.Acquire, h.inside })
	case "ask":
		return "asking", h.ask()
	case "asked":
		return h.asked(limit), nil
	}
	return "", fmt.Errorf("unknown command %q", command)
}

// inside is what a round does while holding.
func (h holder) inside() (overlap string, err error) {
	err = h.client.Create(h.ctx, h.path+"/inside", []byte(h.name))
	if errors.Is(err, coord.ErrNodeExists) {
		other, _, _ := h.client.Get(h.ctx, h.path+"/inside")
		return cmp.Or(string(other), "one that is gone meanwhile"), nil
	}
	if err == nil {
		err = h.noteTurn()
	}
	if err != nil {
		return "", err
	}
	return "", h.client.Delete(h.ctx, h.path+"/inside", -1)
}

// ask asks the holder to let go.
func (h holder) ask() error {
	all, err := h.mutex.Contenders(h.ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return errors.New("no holder to ask")
	}
	return inspect.Revoke(h.ctx, h.client, all[0].Node)
}

func (h holder) asked(limit time.Duration) string {
	select {
	case <-h.hold.Revoked():
		return "asked"
	case <-time.After(limit):
		return "unasked"
	}
}

func init() { zktest.RegisterChild("rwlock-hold", rwlockHold) }

// rwlockHolder is the Go counterpart of testdata/java/RwlockHold.java, with the
// same commands and answers. Its third kind of round downgrades.
type rwlockHolder struct {
	*peer
	lock *rwlock.Lock
}

func rwlockHold(args []string) {
	p, err := newPeer(args, "/turns", "/reading")
	zktest.ExitOn(err)
	l, err := rwlock.New(p.client, p.path+"/lock")
	zktest.ExitOn(err)
	p.serve(rwlockHolder{p, l}.do)
}

func (h rwlockHolder) do(command string, number int) (string, error) {
	limit := time.Duration(number) * time.Millisecond
	switch command {
	case "read":
		return h.acquire(h.lock.AcquireRead, limit)
	case "write":
		return h.acquire(h.lock.AcquireWrite, limit)
	case "downgrade":
		h.downgrade()
		return "downgraded", nil
	case "release":
		return "released", h.hold.Release(h.ctx)
	case "rounds":
		return h.rounds(number, h.round)
	}
	return "", fmt.Errorf("unknown command %q", command)
}

func (h rwlockHolder) downgrade() {
	var err error
	h.hold, err = rwlock.Downgrade(h.ctx, h.hold)
	zktest.ExitOn(err)
}

// round is a writer's, a reader's, or a downgrading writer's.
func (h rwlockHolder) round(i int) (acquiring, func() (string, error)) {
	switch i % 3 {
	case 0:
		return h.lock.AcquireWrite, func() (string, error) { return h.write(), nil }
	case 1:
		return h.lock.AcquireRead, func() (string, error) { return h.read(), nil }
	default:
		return h.lock.AcquireWrite, func() (overlap string, err error) {
			if overlap = h.write(); overlap == "" {
				h.downgrade()
				overlap = h.read()
			}
			return overlap, nil
		}
	}
}

func (h rwlockHolder) write() (overlap string) {
	_, err := h.client.Txn(h.ctx, coord.EphemeralOp(h.path+"/writing", nil))
	if errors.Is(err, coord.ErrNodeExists) {
		return "writing"
	}
	zktest.ExitOn(err)
	before := h.reading()
	zktest.ExitOn(h.noteTurn())
	if len(before)+len(h.reading()) > 0 {
		return "reading"
	}
	zktest.ExitOn(h.client.Delete(h.ctx, h.path+"/writing", -1))
	return ""
}

func (h rwlockHolder) reading() []string {
	names, err := h.client.Children(h.ctx, h.path+"/reading")
	zktest.ExitOn(err)
	return names
}

func (h rwlockHolder) read() (overlap string) {
	reading := h.path + "/reading/" + h.name
	_, err := h.client.Txn(h.ctx, coord.EphemeralOp(reading, nil))
	zktest.ExitOn(err)
	_, writing, err := h.client.Exists(h.ctx, h.path+"/writing")
	zktest.ExitOn(err)
	before, _, err := h.client.Exists(h.ctx, h.path+"/turns")
	zktest.ExitOn(err)
	after, _, err := h.client.Exists(h.ctx, h.path+"/turns")
	zktest.ExitOn(err)
	if writing || before.Version != after.Version {
		return "writing"
	}
	zktest.ExitOn(h.client.Delete(h.ctx, reading, -1))
	return ""
}
