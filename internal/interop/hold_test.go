package interop

import (
	"bufio"
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
	"github.com/zkcoord/zkcoord/coord/rwlock"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// ownTurn is the longest wait for a turn in a round.
const ownTurn = time.Minute

// holder is this module's contender: the Go counterpart of
// testdata/java/Hold.java, with the same commands and answers. Beyond those it
// answers "foreign" when it met a contender of another dialect.
type holder struct {
	ctx    context.Context
	path   string
	name   string
	client *coord.Client
	mutex  *lock.Mutex
	hold   *coord.Hold
}

// hold is the main function of a child process: connect string, path, name,
// session time-out in seconds, dialect.
func hold(args []string) {
	h, err := newHolder(args[0], args[1], args[2], args[3], args[4])
	exitOn(err)
	fmt.Println("ready")
	for commands := bufio.NewScanner(os.Stdin); commands.Scan() && commands.Text() != "quit"; {
		answer, err := h.do(strings.Fields(commands.Text()))
		exitOn(err)
		fmt.Println(answer)
	}
	exitOn(h.client.Close(h.ctx))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func newHolder(connect, path, name, seconds, dialect string) (*holder, error) {
	timeout, err := time.ParseDuration(seconds + "s")
	if err != nil {
		return nil, err
	}
	spoken := map[string]coord.Dialect{"curator": coord.Curator, "kazoo": coord.Kazoo}
	h := &holder{ctx: context.Background(), path: path, name: name}
	h.client, err = coord.Open(h.ctx, connect,
		coord.WithSessionTimeout(timeout), coord.WithDialect(spoken[dialect]), coord.WithIdentity(name))
	if err != nil {
		return nil, err
	}
	if err := h.client.EnsureDir(h.ctx, path); err != nil {
		return nil, err
	}
	err = h.client.Create(h.ctx, path+"/turns", []byte{})
	if err != nil && !errors.Is(err, coord.ErrNodeExists) {
		return nil, err
	}
	h.mutex, err = lock.New(h.client, path+"/lock")
	return h, err
}

func (h *holder) do(command []string) (string, error) {
	number := 0
	if len(command) > 1 {
		var err error
		if number, err = strconv.Atoi(command[1]); err != nil {
			return "", err
		}
	}
	limit := time.Duration(number) * time.Millisecond
	switch command[0] {
	case "acquire":
		return h.acquire(limit)
	case "release":
		return "released", h.hold.Release(h.ctx)
	case "rounds":
		return h.rounds(number)
	case "ask":
		return "asking", h.ask()
	case "asked":
		return h.asked(limit), nil
	}
	return "", fmt.Errorf("unknown command %q", command)
}

func (h *holder) acquire(limit time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(h.ctx, limit)
	defer cancel()
	held, err := h.mutex.Acquire(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "busy", nil
	case errors.Is(err, coord.ErrForeign):
		return "foreign", nil
	case err != nil:
		return "", err
	}
	h.hold = held
	return "held", nil
}

func (h *holder) rounds(count int) (string, error) {
	for range count {
		if answer, err := h.acquire(ownTurn); answer != "held" || err != nil {
			return "", fmt.Errorf("no turn: %q, %w", answer, err)
		}
		overlap, err := h.inside()
		if overlap != "" || err != nil {
			return overlap, err
		}
		if err := h.hold.Release(h.ctx); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("done %d", count), nil
}

// inside is what a round does while holding.
func (h *holder) inside() (overlap string, err error) {
	err = h.client.Create(h.ctx, h.path+"/inside", []byte(h.name))
	if errors.Is(err, coord.ErrNodeExists) {
		other, _, _ := h.client.Get(h.ctx, h.path+"/inside") // gone meanwhile is an overlap all the same
		return "overlap " + string(other), nil
	}
	if err != nil {
		return "", err
	}
	turns, _, err := h.client.Get(h.ctx, h.path+"/turns")
	if err != nil {
		return "", err
	}
	if _, err := h.client.Set(h.ctx, h.path+"/turns", append(turns, h.name+"\n"...), -1); err != nil {
		return "", err
	}
	return "", h.client.Delete(h.ctx, h.path+"/inside", -1)
}

// ask asks the holder to let go.
func (h *holder) ask() error {
	all, err := h.mutex.Contenders(h.ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return errors.New("no holder to ask")
	}
	return inspect.Revoke(h.ctx, h.client, all[0].Node)
}

func (h *holder) asked(limit time.Duration) string {
	select {
	case <-h.hold.Revoked():
		return "asked"
	case <-time.After(limit):
		return "unasked"
	}
}

func init() { zktest.RegisterChild("rwlock-hold", rwlockHold) }

// rwlockHolder is this module's contender for a read/write lock: the Go
// counterpart of testdata/java/RwlockHold.java, with the same commands and
// answers. Its third kind of round downgrades.
type rwlockHolder struct {
	ctx        context.Context
	path, name string
	client     *coord.Client
	lock       *rwlock.Lock
	held       *coord.Hold
}

// rwlockHold is the main function of a child process: connect string, path,
// name, session time-out in seconds, dialect.
func rwlockHold(args []string) {
	seconds, err := strconv.Atoi(args[3])
	exitOn(err)
	dialect := coord.Curator
	if args[4] == "kazoo" {
		dialect = coord.Kazoo
	}
	h := &rwlockHolder{ctx: context.Background(), path: args[1], name: args[2]}
	h.client, err = coord.Open(h.ctx, args[0], coord.WithIdentity(h.name), coord.WithDialect(dialect),
		coord.WithSessionTimeout(time.Duration(seconds)*time.Second))
	exitOn(err)
	exitOn(h.client.EnsureDir(h.ctx, h.path))
	for _, node := range []string{"/turns", "/reading"} { // no containers: these would go when they are empty
		if err := h.client.Create(h.ctx, h.path+node, nil); !errors.Is(err, coord.ErrNodeExists) {
			exitOn(err)
		}
	}
	h.lock, err = rwlock.New(h.client, h.path+"/lock")
	exitOn(err)
	fmt.Println("ready")
	for commands := bufio.NewScanner(os.Stdin); commands.Scan() && commands.Text() != "quit"; {
		answer, err := h.do(strings.Fields(commands.Text()))
		exitOn(err)
		fmt.Println(answer)
	}
	exitOn(h.client.Close(h.ctx))
}

func (h *rwlockHolder) do(command []string) (string, error) {
	number := 0
	if len(command) > 1 {
		var err error
		if number, err = strconv.Atoi(command[1]); err != nil {
			return "", err
		}
	}
	limit := time.Duration(number) * time.Millisecond
	switch command[0] {
	case "read":
		return h.acquire(h.lock.AcquireRead, limit)
	case "write":
		return h.acquire(h.lock.AcquireWrite, limit)
	case "downgrade":
		return "downgraded", h.downgrade()
	case "release":
		return "released", h.held.Release(h.ctx)
	case "rounds":
		return h.rounds(number)
	}
	return "", fmt.Errorf("unknown command %q", command)
}

func (h *rwlockHolder) acquire(side func(context.Context) (*coord.Hold, error), limit time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(h.ctx, limit)
	defer cancel()
	held, err := side(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "busy", nil
	case err != nil:
		return "", err
	}
	h.held = held
	return "held", nil
}

func (h *rwlockHolder) downgrade() (err error) {
	h.held, err = h.held.Downgrade(h.ctx)
	return err
}

func (h *rwlockHolder) rounds(count int) (string, error) {
	for i := range count {
		side, work := h.lock.AcquireWrite, h.write
		if i%3 == 1 {
			side, work = h.lock.AcquireRead, h.read
		}
		if answer, err := h.acquire(side, ownTurn); answer != "held" || err != nil {
			return "", fmt.Errorf("no turn: %q, %w", answer, err)
		}
		overlap, err := work()
		if err == nil && overlap == "" && i%3 == 2 {
			if err = h.downgrade(); err == nil {
				overlap, err = h.read()
			}
		}
		if err != nil {
			return "", err
		}
		if overlap != "" {
			return "overlap " + overlap, nil
		}
		if err := h.held.Release(h.ctx); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("done %d", count), nil
}

func (h *rwlockHolder) write() (overlap string, err error) {
	_, err = h.client.Txn(h.ctx, coord.CreateOp(h.path+"/writing", nil, coord.Ephemeral))
	if errors.Is(err, coord.ErrNodeExists) {
		return "writing", nil
	}
	if err != nil {
		return "", err
	}
	before, err := h.client.Children(h.ctx, h.path+"/reading")
	if err != nil {
		return "", err
	}
	turns, _, err := h.client.Get(h.ctx, h.path+"/turns")
	if err != nil {
		return "", err
	}
	if _, err := h.client.Set(h.ctx, h.path+"/turns", append(turns, h.name+"\n"...), -1); err != nil {
		return "", err
	}
	after, err := h.client.Children(h.ctx, h.path+"/reading")
	if err != nil {
		return "", err
	}
	if len(before)+len(after) > 0 {
		return "reading", nil
	}
	return "", h.client.Delete(h.ctx, h.path+"/writing", -1)
}

func (h *rwlockHolder) read() (overlap string, err error) {
	reading := h.path + "/reading/" + h.name
	if _, err := h.client.Txn(h.ctx, coord.CreateOp(reading, nil, coord.Ephemeral)); err != nil {
		return "", err
	}
	_, writing, err := h.client.Exists(h.ctx, h.path+"/writing")
	if err != nil {
		return "", err
	}
	before, _, err := h.client.Exists(h.ctx, h.path+"/turns")
	if err != nil {
		return "", err
	}
	after, _, err := h.client.Exists(h.ctx, h.path+"/turns")
	if err != nil {
		return "", err
	}
	if writing || before.Version != after.Version {
		return "writing", nil
	}
	return "", h.client.Delete(h.ctx, reading, -1)
}
