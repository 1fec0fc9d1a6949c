//go:build linux || darwin

package docs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/shards"
	"github.com/zkcoord/zkcoord/coord/slots"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// runbooks are the run-books of docs/operations.md, and the parts of
// docs/securing.md, by their headings: each makes the trouble, or what else it
// needs, runs the blocks, and looks whether they have done what is said.
var runbooks = map[string]func(b *book){
	"Stuck lock":        stuckLock,
	"Orphan":            orphan,
	"Lost holds":        lostHolds,
	"Lost quorum":       lostQuorum,
	"Full counter":      fullCounter,
	"Deadlock":          deadlock,
	"Dead letters":      deadLetters,
	"Failed job":        failedJob,
	"Failing schedule":  failingSchedule,
	"Unserved schedule": unservedSchedule,
	"Unowned keys":      unownedKeys,
	"Kept slot":         keptSlot,
	"TLS":               overTLS,
	"Permissions":       permitted,
}

// A book is a run-book at its desk, with an embedded server, unless it brings
// servers of its own.
type book struct {
	*desk
	steps []block
}

func runBooks(t *testing.T, bin string) {
	for heading, play := range runbooks {
		t.Run(heading, func(t *testing.T) {
			t.Parallel()
			b := &book{desk: newDesk(t, bin, coordtest.Embedded(t).ConnectString())}
			for _, s := range blocksOfKind(t, "sh") {
				if s.heading == heading {
					b.steps = append(b.steps, s)
				}
			}
			require.NotEmpty(t, b.steps)
			play(b)
		})
	}
}

// step runs a block, of which the commands with these statuses fail.
func (b *book) step(i int, failing ...string) (output string) {
	b.t.Helper()
	output, failed := b.run(b.steps[i])
	require.Equal(b.t, failing, failed, "%v wrote:\n%s", b.steps[i], output)
	return output
}

func (b *book) client(name string) *coord.Client {
	b.t.Helper()
	return coordtest.Open(b.t, b.connect, coord.WithSessionTimeout(10*time.Second), coord.WithIdentity(name))
}

func (b *book) mutex(c *coord.Client, path string) *lock.Mutex {
	b.t.Helper()
	m, err := lock.New(c, path)
	require.NoError(b.t, err)
	return m
}

func (b *book) acquire(c *coord.Client, path string) *coord.Hold {
	b.t.Helper()
	return coordtest.Acquire(b.t, b.mutex(c, path))
}

// waiting begins to wait for a lock, under other holds, and returns where the
// outcome is told.
func (b *book) waiting(c *coord.Client, path string, line int, under ...*coord.Hold) <-chan error {
	b.t.Helper()
	m := b.mutex(c, path)
	ctx, cancel := context.WithCancel(context.Background())
	b.t.Cleanup(cancel)
	for _, h := range under {
		ctx = h.Context(ctx)
	}
	granted := coordtest.Go(func() error { return coordtest.Err(m.Acquire(ctx)) })
	zktest.Eventually(b.t, coordtest.Soon, func() bool {
		all, err := m.Contenders(b.t.Context())
		return err == nil && len(all) == line
	}, "%d stand in line at %s", line, path)
	return granted
}

func stuckLock(b *book) {
	h := b.acquire(b.client("stuck"), "/locks/backup")
	granted := b.waiting(b.client("patient"), "/locks/backup", 2)
	text := b.step(0)
	require.Contains(b.t, text, fmt.Sprintf("%d", os.Getpid()), "the process is named")
	require.NoError(b.t, zktest.Receive(b.t, coordtest.Soon, granted, "the lock"))
	zktest.Receive(b.t, coordtest.Soon, h.Done(), "the news")
	require.ErrorIs(b.t, h.Err(), coord.ErrNodeDeleted)
}

const orphans = "_c_6f0d2b0a-6c1e-4a3e-9a53-0c7c4f6f2d11-lock-0000000001"

func orphan(b *book) {
	require.NoError(b.t, b.client("somebody").Create(b.t.Context(), "/locks/old/"+orphans, []byte("by hand")))
	granted := b.waiting(b.client("patient"), "/locks/old", 2)
	text := b.step(0, "1 zkcoord doctor")
	require.Contains(b.t, text, "belongs to no session")
	require.NoError(b.t, zktest.Receive(b.t, coordtest.Soon, granted, "the lock"))
}

func lostHolds(b *book) { require.Contains(b.t, b.step(0), "a write takes") }

func lostQuorum(b *book) {
	ens := zktest.RequireEnsemble(b.t)
	b.connect = ens.ConnectString()
	for _, s := range ens.Servers()[:2] {
		require.NoError(b.t, s.Kill())
	}
	text := b.step(0, "1 zkcoord doctor --connect-timeout 3s")
	require.Contains(b.t, text, "part of a quorum")
	for _, s := range ens.Servers()[:2] {
		require.NoError(b.t, s.Restart())
	}
	require.NoError(b.t, ens.AwaitReady())
	zktest.Eventually(b.t, coordtest.Soon, func() bool { // it may be slow at first
		_, failed := b.run(b.steps[0])
		return len(failed) == 0
	}, "the doctor finds something")
}

func fullCounter(b *book) {
	zktest.Require(b.t, zktest.Real) // for Java
	user, last := b.client("user"), "/locks/old/"+strings.Replace(orphans, "0000000001", "2147418112", 1)
	require.NoError(b.t, user.EnsureDir(b.t.Context(), "/locks/old"))
	_, err := user.Txn(b.t.Context(), coord.EphemeralOp(last, []byte("user")))
	require.NoError(b.t, err)
	_, err = b.mutex(b.client("next"), "/locks/old").TryAcquire(b.t.Context())
	require.ErrorIs(b.t, err, coord.ErrBusy)
	require.Contains(b.t, b.step(0), "2147418112 of 2147483647 sequence numbers")
	require.NoError(b.t, user.Close(context.Background()))
	b.step(1)
	h := b.acquire(b.client("next"), "/locks/old")
	require.True(b.t, strings.HasSuffix(h.Node(), "-0000000000"), h.Node())
}

func deadlock(b *book) {
	alice, bob := b.client("alice"), b.client("bob")
	a, h := b.acquire(alice, "/locks/a"), b.acquire(bob, "/locks/b")
	b.waiting(alice, "/locks/b", 2, a)
	granted := b.waiting(bob, "/locks/a", 2, h)
	text := b.step(0, "1 zkcoord graph /")
	require.Contains(b.t, text, "circle 1: ")
	require.NoError(b.t, zktest.Receive(b.t, coordtest.Soon, granted, "the lock"))
}

func deadLetters(b *book) {
	q, err := queue.New(b.client("producer"), "/jobs/dead")
	require.NoError(b.t, err)
	items := []string{"failed", "--help", "--json", "--zk=127.0.0.1:9", "--", "", "a\x00b\n\n"}
	for _, item := range items {
		require.NoError(b.t, q.Put(b.t.Context(), []byte(item)))
	}
	text := b.step(0)
	require.True(b.t, strings.HasSuffix(strings.TrimSpace(text), "0"), text)
	back, err := queue.New(b.client("consumer"), "/jobs")
	require.NoError(b.t, err)
	for _, want := range items {
		item, err := back.TryTake(b.t.Context())
		require.NoError(b.t, err)
		require.Equal(b.t, want, string(item))
	}
	require.NoError(b.t, q.Put(b.t.Context(), []byte("kept")))
	text = b.step(1)
	require.Contains(b.t, text, "1 letter acknowledged")
	require.Contains(b.t, text, "0 things are wrong")
	n, err := q.Len(b.t.Context())
	require.NoError(b.t, err)
	require.Equal(b.t, 1, n)
}

func failedJob(b *book) {
	ledger, err := once.New(b.client("worker"), "/ledger")
	require.NoError(b.t, err)
	_, err = ledger.Do(b.t.Context(), "invoice-7",
		func(context.Context, *once.Run) ([]byte, error) { return nil, errors.New("the disk is full") })
	require.Error(b.t, err)
	text := b.step(0)
	require.Contains(b.t, text, "the disk is full")
	require.Contains(b.t, text, "0 things are wrong")
}

// instant is a schedule of one slot.
type instant time.Time

func (i instant) Next(t time.Time) time.Time {
	if t.Before(time.Time(i)) {
		return time.Time(i)
	}
	return time.Time{}
}

// failingSchedule has a slot that goes on for ever, at the instant of the
// run-book.
func failingSchedule(b *book) {
	slot, err := time.Parse(time.RFC3339, "2026-11-23T02:30:00Z")
	require.NoError(b.t, err)
	worker := b.client("worker")
	require.NoError(b.t, worker.EnsureDir(b.t.Context(), "/cron/report"))
	require.NoError(b.t, worker.Create(b.t.Context(), "/cron/report/mark", []byte(`{"through":"2026-11-22T02:30:00Z"}`)))
	schedule, err := cron.New(worker, "/cron/report", instant(slot))
	require.NoError(b.t, err)
	s, err := schedule.Begin(b.t.Context())
	require.NoError(b.t, err)
	require.Equal(b.t, "/cron/report/keys/23/2026-11-23T02:30:00Z", path.Dir(s.Node()))
	text := b.step(0)
	require.Contains(b.t, text, "running")
	require.Contains(b.t, text, "unfinished")
	zktest.Receive(b.t, coordtest.Soon, s.Done(), "the news")
}

// The last process that served it has gone.
func unservedSchedule(b *book) {
	worker := b.client("worker")
	require.NoError(b.t, worker.EnsureDir(b.t.Context(), "/cron/report"))
	require.NoError(b.t,
		worker.Create(b.t.Context(), "/cron/report/mark",
			[]byte(`{"through":"2026-11-22T02:30:00Z","next":"2026-11-23T02:30:00Z"}`)))
	const unserved = "nobody has begun the slot that was due "
	text := b.step(0, "1 zkcoord doctor /cron/report")
	require.Equal(b.t, 2, strings.Count(text, unserved), text)
	slot, err := time.Parse(time.RFC3339, "2026-11-23T02:30:00Z")
	require.NoError(b.t, err)
	schedule, err := cron.New(worker, "/cron/report", instant(slot))
	require.NoError(b.t, err)
	s, err := schedule.Begin(b.t.Context())
	require.NoError(b.t, err)
	require.NoError(b.t, coordtest.Err(s.End(b.t.Context(), nil, nil)))
	require.NotContains(b.t, b.step(0), unserved)
}

func unownedKeys(b *book) {
	s, err := shards.New(b.client("operator"), "/shards/orders")
	require.NoError(b.t, err)
	require.NoError(b.t, s.SetKeys(b.t.Context(), "one", "two"))
	require.Contains(b.t, b.step(0), "no member is there, and 2 keys are unowned")
}

func keptSlot(b *book) {
	durable, err := slots.New(b.client("host7"), "/ids", 1, slots.Durable("host7", time.Hour))
	require.NoError(b.t, err)
	require.NoError(b.t, coordtest.Acquire(b.t, durable).Release(b.t.Context()))
	other, err := slots.New(b.client("host8"), "/ids", 1)
	require.NoError(b.t, err)
	given := coordtest.Go(func() error { return coordtest.Err(other.Acquire(b.t.Context())) })
	zktest.Eventually(b.t, coordtest.Soon, func() bool {
		all, err := durable.List(b.t.Context())
		return err == nil && len(all) == 1 && !all[0].Away.IsZero()
	}, "the other waits")
	text := b.step(0)
	require.Contains(b.t, text, "host7")
	require.NoError(b.t, zktest.Receive(b.t, coordtest.Soon, given, "the number"))
}

// overTLS is docs/securing.md's server and clients with certificates. The
// server has a plain port as well, by which the test sees that it serves.
func overTLS(b *book) {
	zktest.Require(b.t, zktest.Real)
	if _, err := exec.LookPath("openssl"); err != nil {
		b.t.Skip("left out: needs openssl")
	}
	b.steps[0].text = strings.ReplaceAll(b.steps[0].text, "DNS:zk1", "IP:127.0.0.1")
	b.step(0)
	secure := freePort(b.t)
	var opts []zktest.ServerOption
	for _, properties := range blocksOfKind(b.t, "properties") {
		for line := range strings.Lines(properties.text) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			value = strings.ReplaceAll(value, "/etc/zookeeper/tls", b.dir)
			opts = append(opts, zktest.WithConfig(key, strings.ReplaceAll(value, "2281", secure)))
		}
	}
	server := zktest.RequireReal(b.t, opts...)
	b.connect = server.ConnectString()
	addr := "127.0.0.1:" + secure
	b.steps[1].text = strings.ReplaceAll(b.steps[1].text, "zk1:2281,zk2:2281,zk3:2281", addr)
	require.Contains(b.t, b.step(1), "a write takes")

	file := func(name string) string { return filepath.Join(b.dir, name) }
	client, err := openByTLS(b.t.Context(), addr, file("ca.pem"), file("billing.crt"), file("billing.key"))
	require.NoError(b.t, err)
	require.NoError(b.t, client.Create(b.t.Context(), "/own", nil))
	plain := zktest.Connect(b.t, b.connect, zktest.SessionTimeout)
	_, _, err = plain.Get("/own")
	require.ErrorIs(b.t, err, zk.ErrNoAuth)
	_, err = plain.Create("/for-billing", []byte("data"), 0,
		[]zk.ACL{{Perms: zk.PermRead, Scheme: "x509", ID: "CN=billing"}})
	require.NoError(b.t, err)
	_, _, err = client.Get(b.t.Context(), "/for-billing")
	require.NoError(b.t, err)
	require.NoError(b.t, client.Close(context.Background()))
	_, failed := b.run(block{text: "export ZK_SERVERS=" + addr + " ZK_TLS_CA=ca.pem\nzkcoord --connect-timeout 1s ls /\n"})
	require.Equal(b.t, []string{"69 zkcoord --connect-timeout 1s ls /"}, failed, "a client without a certificate")
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

// permitted is docs/securing.md's private directory, and a stranger to it.
func permitted(b *book) {
	zktest.Require(b.t, zktest.Real)
	b.connect = zktest.RequireReal(b.t).ConnectString()
	b.step(0)
	b.step(1)
	holder := coordtest.Open(b.t, b.connect, coord.WithAuth("digest", "billing:secret"),
		coord.WithACL("auth::cdrwa", "world:anyone:r"))
	h := b.acquire(holder, "/billing/leader")
	text := b.step(2, "125 zkcoord lock --timeout 5s /billing/leader -- ./work.sh",
		"1 zkcoord revoke /billing/leader", "1 zkcoord break --yes /billing/leader")
	require.Contains(b.t, text, "holds")
	require.Equal(b.t, 3, strings.Count(text, "not permitted by the node's ACL"), text)
	require.NoError(b.t, h.Err())
}

func openByTLS(ctx context.Context, servers, caFile, certFile, keyFile string) (*coord.Client, error) {
	return coord.Open(ctx, servers, coord.WithTLSFiles(caFile, certFile, keyFile), coord.WithACL("auth::cdrwa"))
}
