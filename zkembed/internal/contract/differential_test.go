package contract

import (
	"fmt"
	"maps"
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
	body   enc
	kind   stepKind
	text   string
}

type stepKind int

const (
	doCall      stepKind = iota
	doReconnect          // drop the connection, take the session up again
	doRestart            // close the session, begin another
)

// do performs a step and describes all its effects.
func (s *side) do(t *testing.T, st step) string {
	c := s.conns[st.client]
	switch st.kind {
	case doReconnect:
		s.conns[st.client] = c.again(t)
		_ = c.nc.Close()
		return fmt.Sprintf("reconnected timeout=%d same=%t", s.conns[st.client].timeout, s.conns[st.client].session == c.session)
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
	g := newGenerator(seed)
	var past []string
	var unordered [clients]bool
	for i := range ops {
		st := g.next()
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
			t.Fatalf("seed %d, step %d: the servers differ at\nclient%d %s\nembedded: %s\n          events %s\nreal:     %s\n          events %s\nlast steps:\n%s",
				seed, i, st.client, st.text, gotA, eventsA, gotB, eventsB, strings.Join(past, "\n"))
		}
		g.learn(gotA)
		past = append(past, fmt.Sprintf("%d client%d %s: %s %s", i, st.client, st.text, gotA, eventsA))
		past = past[max(0, len(past)-25):]
	}
	t.Logf("%d operations, no difference; by kind: %s", ops, g.statistics())
}

// generator makes random steps over few paths, so the steps often meet.
type generator struct {
	r     *rand.Rand
	made  []string // sequential nodes made lately
	zxid  int64    // the last one that a client saw
	count map[string]int
}

func newGenerator(seed uint64) *generator {
	return &generator{r: rand.New(rand.NewPCG(seed, 0)), count: map[string]int{}}
}

func pick[T any](g *generator, v ...T) T { return v[g.r.IntN(len(v))] }

// chance is true in n of 100 cases.
func (g *generator) chance(n int) bool { return g.r.IntN(100) < n }

var (
	numbered = regexp.MustCompile(`/[/a-z-]*-?\d{10}`)
	replied  = regexp.MustCompile(`zxid=(\d+)`)
)

// learn remembers the names that a server made up, and how far it is.
func (g *generator) learn(outcome string) {
	if m := replied.FindStringSubmatch(outcome); m != nil {
		zxid, _ := strconv.ParseInt(m[1], 10, 64)
		g.zxid = max(g.zxid, zxid)
	}
	g.made = append(g.made, numbered.FindAllString(outcome, -1)...)
	g.made = g.made[max(0, len(g.made)-8):]
}

func (g *generator) path() string {
	if len(g.made) > 0 && g.chance(20) {
		return pick(g, g.made...)
	}
	if g.chance(3) {
		return pick(g, "", "a", "/a/", "//", "/a//b", "/a/.", "/a/../b", "/.", "/a\x00b", "/a\x01", "/\u00e9", "/\u007f",
			"/\ue000", "/a/b\ufff5", "/...", "/zookeeper", "/zookeeper/quota", "/zookeeper/config", "/zookeeper/x")
	}
	if g.chance(4) {
		return "/"
	}
	p := "/" + pick(g, "a", "b", "c")
	for g.chance(45) && len(p) < 8 {
		p += "/" + pick(g, "a", "b", "c")
	}
	return p
}

func (g *generator) data() []byte {
	switch g.r.IntN(4) {
	case 0:
		return nil
	case 1:
		return []byte{}
	}
	return []byte(strings.Repeat("x", g.r.IntN(20)))
}

func (g *generator) version() int32 { return pick[int32](g, -1, -1, -1, -1, 0, 0, 1, 2, -2) }

// The digest identities of u:p and v:q.
const (
	digestU = "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ="
	digestV = "v:Mfy8apI9YguGKmh+AxUmAFSwkII="
)

func (g *generator) acl() []acl {
	if g.chance(80) {
		return open
	}
	perms := int32(g.r.IntN(32))
	switch g.r.IntN(12) {
	case 0:
		return []acl{{perms, "world", "anyone"}}
	case 1:
		return []acl{{perms, "digest", digestU}, {31, "digest", digestV}}
	case 2:
		return []acl{{perms, "auth", pick(g, "", "x")}, {1, "world", "anyone"}}
	case 3:
		return []acl{{perms, "ip", pick(g, "127.0.0.1", "127.0.0.0/8", "10.0.0.0/8", "10.1.2.3")}}
	case 4:
		return nil
	case 5:
		return []acl{{31, pick(g, "world", "digest", "ip", "nosuch", ""), pick(g, "", "x", "a:b:c", "1.2.3", "1.2.3.4/33", "a:", ":a")}}
	case 6:
		return []acl{{31, "world", "anyone"}, {31, "world", "anyone"}, {perms, "digest", digestU}}
	case 7, 8:
		return g.mixed(perms)
	}
	return []acl{{perms, "world", "anyone"}, {31, "digest", digestU}}
}

// mixed is a list in which the same turns up as it was sent, or only after
// auth has been expanded.
func (g *generator) mixed(perms int32) []acl {
	list := []acl{{31, "world", "anyone"}}
	for range 1 + g.r.IntN(4) {
		list = append(list, pick(g, acl{31, "auth", ""}, acl{31, "auth", ""}, acl{31, "auth", "x"}, acl{perms, "auth", ""},
			acl{31, "digest", digestU}, acl{31, "digest", digestV}, acl{31, "world", "anyone"}))
	}
	g.r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// create leaves out, inside a multi, TTL flags without a time to live: they
// make a real server stumble over its own classes.
func (g *generator) create(inMulti bool) part {
	path := g.path()
	if g.chance(30) {
		path += "-"
	}
	flags := pick[int32](g, persistent, persistent, persistent, ephemeral, ephemeral, sequential, ephemeralSq)
	op := pick[int32](g, opCreate, opCreate, opCreate2)
	if g.chance(5) {
		flags = pick[int32](g, container, ttlNode, ttlSeq, 7, -1)
		if inMulti {
			flags = container
		}
	}
	body := create(path, g.data(), g.acl(), flags)
	switch {
	case g.chance(8):
		op, body = opContainer, create(path, g.data(), g.acl(), container)
	case g.chance(8):
		op, body = opTTL, createTTL(path, g.data(), g.acl(), pick[int32](g, ttlNode, ttlSeq), pick[int64](g, 1, 1000, 1<<40-1, 1<<40, 0, -1, -5))
	}
	return part{op, body}
}

func (g *generator) write(inMulti bool) part {
	switch g.r.IntN(8) {
	case 0, 1, 2:
		return g.create(inMulti)
	case 3, 4:
		return part{opDelete, versioned(g.path(), g.version())}
	case 5:
		return part{opCheck, versioned(g.path(), g.version())}
	}
	return part{opSetData, setData(g.path(), g.data(), g.version())}
}

func (g *generator) parts(make func() part) []part {
	var ps []part
	for range g.r.IntN(5) {
		ps = append(ps, make())
	}
	return ps
}

func (g *generator) read() part {
	op := pick[int32](g, opGetData, opGetData, opGetChildren)
	return part{op, watched(g.path(), g.chance(20))}
}

func (g *generator) paths() []string {
	var ps []string
	for range g.r.IntN(3) {
		ps = append(ps, g.path())
	}
	return ps
}

// next makes a step.
func (g *generator) next() step {
	st := step{client: g.r.IntN(clients)}
	p := part{}
	switch n := g.r.IntN(100); {
	case n < 32:
		// A check by itself that succeeds is left out: a real server never
		// answers it, and no client sends it outside a multi.
		if p = g.write(false); p.op == opCheck {
			p.body = versioned(g.path(), -2)
		}
	case n < 42:
		p = part{opMulti, multi(g.parts(func() part { return g.write(true) }))}
	case n < 50:
		p = part{opExists, watched(g.path(), g.chance(50))}
	case n < 58:
		p = part{opGetData, watched(g.path(), g.chance(50))}
	case n < 66:
		p = part{pick[int32](g, opGetChildren, opGetChildren2), watched(g.path(), g.chance(50))}
	case n < 69:
		p = part{opSetACL, enc{}.str(g.path()).acls(g.acl()).i32(g.version())}
	case n < 99:
		p = g.rare()
	default:
		st.kind = pick(g, doReconnect, doReconnect, doRestart)
	}
	st.op, st.body = p.op, p.body
	st.text = fmt.Sprintf("op %d %q", st.op, string(st.body))
	if st.kind != doCall {
		st.text = []string{"", "reconnects", "restarts"}[st.kind]
	}
	g.count[strings.Fields(st.text)[0]+" "+fmt.Sprint(st.op)]++
	return st
}

func (g *generator) rare() part {
	switch g.r.IntN(13) {
	case 0:
		return part{opGetACL, enc{}.str(g.path())}
	case 1:
		return part{opSync, enc{}.str(g.path())}
	case 2:
		return part{opPing, nil}
	case 3:
		return part{opMultiRead, multi(g.parts(g.read))}
	case 4:
		return part{opSetWatches, enc{}.i64(g.since()).strs(g.paths()).strs(g.paths()).strs(g.paths())}
	case 5:
		return part{opSetWatches2, enc{}.i64(g.since()).strs(g.paths()).strs(g.paths()).strs(g.paths()).strs(g.paths()).strs(g.paths())}
	case 6:
		return part{opGetEphemerals, enc{}.str(pick(g, "", "/", g.path()))}
	case 7:
		return part{opAllChildren, enc{}.str(g.path())}
	case 8:
		return part{opWhoAmI, nil}
	case 9:
		return part{opAddWatch, enc{}.str(g.path()).i32(int32(g.r.IntN(2)))}
	case 10:
		return part{opRemoveWatches, enc{}.str(g.path()).i32(int32(1 + g.r.IntN(3)))}
	case 11:
		if g.chance(40) {
			return part{opAuth, enc{}.i32(0).str("digest").buf([]byte(pick(g, "u:p", "v:q", "w")))}
		}
	}
	return part{opExists, watched(g.path(), false)}
}

// since is a zxid that a reconnecting client may have seen last: of the nodes
// that it watched some have changed, and some have not.
func (g *generator) since() int64 { return g.zxid - int64(g.r.IntN(60)) }

func (g *generator) statistics() string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(g.count)) {
		fmt.Fprintf(&b, "%s: %d, ", k, g.count[k])
	}
	return strings.TrimSuffix(b.String(), ", ")
}
