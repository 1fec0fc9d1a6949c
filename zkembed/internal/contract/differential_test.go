package contract

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// clients is how many sessions the random test keeps on each server.
const clients = 3

// side is one of the two servers, seen through a client per session.
type side struct {
	name  string
	addr  string
	conns [clients]*raw
	ids   map[int64]string // sessions by the order in which they began
	times map[int64]int64  // time of each transaction, by zxid
	begun time.Time
}

func newSide(t *testing.T, name, addr string) *side {
	s := &side{name: name, addr: addr, ids: map[int64]string{0: "none"}, times: map[int64]int64{}, begun: time.Now()}
	for k := range s.conns {
		s.fresh(t, k)
	}
	return s
}

// fresh gives client k a new session.
func (s *side) fresh(t *testing.T, k int) {
	s.conns[k] = connect(t, s.addr)
	s.ids[s.conns[k].session] = fmt.Sprintf("session%d", len(s.ids))
}

var (
	owner = regexp.MustCompile(`own0x[0-9a-f]+`)
	clock = regexp.MustCompile(`stat\(c(\d+) m(\d+) ct(\d+) mt(\d+)`)
)

// normal replaces what may differ between two servers: session ids by their
// order, and times, once they are known to be those of their transactions.
func (s *side) normal(t *testing.T, text string) string {
	text = owner.ReplaceAllStringFunc(text, func(m string) string {
		id, err := strconv.ParseUint(m[5:], 16, 64)
		require.NoError(t, err)
		name, ok := s.ids[int64(id)]
		require.True(t, ok, "%s: unknown session %s", s.name, m)
		return "own(" + name + ")"
	})
	return clock.ReplaceAllStringFunc(text, func(m string) string {
		var c, mz, ct, mt int64
		_, err := fmt.Sscanf(m, "stat(c%d m%d ct%d mt%d", &c, &mz, &ct, &mt)
		require.NoError(t, err)
		s.checkTime(t, c, ct)
		s.checkTime(t, mz, mt)
		return fmt.Sprintf("stat(c%d m%d", c, mz)
	})
}

// checkTime: one transaction has one time, and it lies within the test.
func (s *side) checkTime(t *testing.T, zxid, ms int64) {
	if zxid == 0 {
		require.Zero(t, ms)
		return
	}
	if known, ok := s.times[zxid]; ok {
		require.Equal(t, known, ms, "%s: time of zxid %d", s.name, zxid)
	}
	s.times[zxid] = ms
	require.LessOrEqual(t, s.begun.UnixMilli(), ms, s.name)
	require.GreaterOrEqual(t, time.Now().UnixMilli(), ms, s.name)
}

// step is one random thing that a client does.
type step struct {
	client int
	op     int32
	body   []byte
	kind   stepKind
	text   string
}

type stepKind int

const (
	doCall      stepKind = iota
	doReconnect          // drop the connection, take the session up again
	doRestart            // close the session, begin another
)

// nextStep makes a step: nearly always a request.
func nextStep(r *rand.Rand, g *Generator) step {
	st := step{client: r.IntN(clients)}
	switch r.IntN(300) {
	case 0, 1:
		st.kind, st.text = doReconnect, "reconnects"
	case 2:
		st.kind, st.text = doRestart, "restarts"
	default:
		st.op, st.body = g.Request()
		st.text = fmt.Sprintf("op %d %q", st.op, st.body)
	}
	return st
}

// do performs a step and describes all its effects.
func (s *side) do(t *testing.T, st step) string {
	c := s.conns[st.client]
	switch st.kind {
	case doReconnect:
		s.conns[st.client] = c.again(t)
		_ = c.nc.Close()
		return fmt.Sprintf("reconnected timeout=%d same=%t", s.conns[st.client].timeout,
			s.conns[st.client].session == c.session)
	case doRestart:
		r, err := c.call(opClose, nil)
		require.NoError(t, err, s.name)
		_ = c.nc.Close()
		events := s.events(st.client, false)
		s.fresh(t, st.client)
		return fmt.Sprintf("closed zxid=%d code=%d events=%s", r.zxid, r.code, events)
	}
	r, err := c.call(st.op, st.body)
	if err != nil {
		// The server has ended the connection: so must the other one.
		s.conns[st.client] = c.again(t)
		return "cut off"
	}
	out := fmt.Sprintf("zxid=%d code=%d", r.zxid, r.code)
	if r.code == 0 {
		out += " " + body(st.op, r.body)
	}
	return s.normal(t, out)
}

// events since the client's last step. After a session has ended, the order
// of events for its nodes is the server's own affair.
func (s *side) events(k int, ordered bool) string {
	events := s.conns[k].takeEvents()
	if !ordered {
		slices.SortFunc(events, func(a, b event) int {
			return strings.Compare(a.String(), b.String())
		})
	}
	return fmt.Sprint(events)
}

func setting(t *testing.T, name string, otherwise uint64) uint64 {
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(v, 10, 64)
	require.NoError(t, err, name)
	return n
}

func TestRandomOperationsHaveTheSameEffectsAsOnARealServer(t *testing.T) {
	// No reaper and no expiry: their zxids would differ in time.
	real := zktest.RequireReal(t, zktest.WithContainerCheck(24*time.Hour))
	embedded, err := zkembed.Start(zkembed.WithTick(zktest.DefaultTick), zkembed.WithReaper(0),
		zkembed.WithSessionTimeouts(200*time.Millisecond, 600*time.Second))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, embedded.Close()) })

	seed := setting(t, "CONTRACT_SEED", rand.Uint64())
	ops := setting(t, "CONTRACT_OPS", 20_000)
	t.Logf("CONTRACT_SEED=%d CONTRACT_OPS=%d", seed, ops)
	a, b := newSide(t, "embedded", embedded.Addr()), newSide(t, "real", real.Addr())
	r := rand.New(rand.NewPCG(seed, 0))
	g, count := NewGenerator(r), map[string]int{}
	var past []string
	var unordered [clients]bool
	for i := range ops {
		st := nextStep(r, g)
		count[fmt.Sprint(strings.Fields(st.text)[0], " ", st.op)]++
		if i >= ops-clients { // collect the events still under way
			st = step{client: int(ops - 1 - i), op: opPing, text: "ping"}
		}
		if st.kind == doRestart {
			unordered = [clients]bool{true, true, true}
		}
		gotA, gotB := a.do(t, st), b.do(t, st)
		eventsA, eventsB := a.events(st.client, !unordered[st.client]), b.events(st.client, !unordered[st.client])
		unordered[st.client] = false
		if gotA != gotB || eventsA != eventsB {
			t.Fatalf(
				"seed %d, step %d: the servers differ at\nclient%d %s\nembedded: %s\n          events %s\nreal:     %s\n          events %s\nlast steps:\n%s",
				seed, i, st.client, st.text, gotA, eventsA, gotB, eventsB, strings.Join(past, "\n"))
		}
		g.Learn(gotA)
		g.Zxid = max(g.Zxid, a.conns[st.client].zxid)
		past = append(past, fmt.Sprintf("%d client%d %s: %s %s", i, st.client, st.text, gotA, eventsA))
		past = past[max(0, len(past)-25):]
	}
	t.Logf("%d operations, no difference; by kind: %v", ops, count)
}
