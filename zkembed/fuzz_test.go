package zkembed_test

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/virtual"
	"github.com/zkcoord/zkcoord/zkembed"
)

// script makes requests from bytes: mostly valid ones over few paths, often the
// same path as the last time, to make them conflict.
type script struct {
	b    []byte
	last string
}

// next takes a number below n from the script; an exhausted one has zeros.
func (s *script) next(n int) int {
	if len(s.b) == 0 {
		return 0
	}
	v := int(s.b[0]) % n
	s.b = s.b[1:]
	return v
}

func from[T any](s *script, v ...T) T { return v[s.next(len(v))] }

func (s *script) path() []byte {
	if s.next(2) == 0 {
		s.last = from(s, "/a", "/a/b", "/b", "/a/b/c", "/b/c", "/a-0000000000", "/a/-0000000001", "/", "/zookeeper/a", "a//")
	}
	return jute(s.last)
}

func number(v int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(v)) }

// times is a vector of n parts.
func times(n int, part func() []byte) []byte {
	b := number(n)
	for range n {
		b = append(b, part()...)
	}
	return b
}

func (s *script) acl() []byte {
	all := slices.Concat(number(31), jute("world"), jute("anyone"))
	if s.next(8) < 7 {
		return append(number(1), all...)
	}
	some := slices.Concat(number(31), jute("auth"), jute(""))
	return times(s.next(3), func() []byte { return from(s, all, some) })
}

func (s *script) version() []byte { return number(from(s, -1, -1, -1, 0, 1)) }

// write is the body of a write request.
func (s *script) write(op zkembed.Op) []byte {
	switch op {
	case zkembed.OpSetData:
		return slices.Concat(s.path(), jute(from(s, "", "x", "xyz")), s.version())
	case zkembed.OpDelete, zkembed.OpCheck:
		return append(s.path(), s.version()...)
	case zkembed.OpSetACL:
		return slices.Concat(s.path(), s.acl(), s.version())
	}
	// Flags: persistent, ephemeral, sequential, both, container, and the two
	// that go with a time to live.
	flags := from(s, 0, 0, 0, 1, 1, 2, 3, 4, 5)
	if op == zkembed.OpCreateTTL {
		flags = from(s, 5, 5, 6, 0)
	}
	path := s.path()
	if flags&2 != 0 {
		path = from(s, jute("/a-"), jute("/a/-"), path)
	}
	b := slices.Concat(path, jute("x"), s.acl(), number(flags))
	if op == zkembed.OpCreateTTL {
		b = append(b, 0, 0, 0, 0, 0, 0, byte(s.next(64)), 1) // up to 16 s
	}
	return b
}

func (s *script) parts(ops ...zkembed.Op) (b []byte) {
	for range s.next(4) {
		op := from(s, ops...)
		b = slices.Concat(b, number(int(op)), []byte{0}, number(-1), s.body(op))
	}
	return slices.Concat(b, number(-1), []byte{1}, number(-1))
}

func (s *script) body(op zkembed.Op) []byte {
	switch op {
	case zkembed.OpPing, zkembed.OpWhoAmI, zkembed.OpCloseSession:
		return nil
	case zkembed.OpMulti:
		return s.parts(writes[:6]...)
	case zkembed.OpMultiRead:
		return s.parts(zkembed.OpGetData, zkembed.OpGetChildren)
	case zkembed.OpAuth:
		return slices.Concat(number(0), jute("digest"), jute(from(s, "u:p", "v:q")))
	case zkembed.OpSetWatches, zkembed.OpSetWatches2:
		b := append(number(0), number(s.next(64))...)
		for range from(s, 3, 5) {
			b = append(b, times(s.next(3), s.path)...)
		}
		return b
	case zkembed.OpAddWatch, zkembed.OpRemoveWatches:
		return append(s.path(), number(s.next(4))...)
	}
	if slices.Contains(writes, op) {
		return s.write(op)
	}
	return append(s.path(), byte(s.next(2))) // a read, with a watch or without
}

var writes = []zkembed.Op{
	zkembed.OpCreate, zkembed.OpCreate2, zkembed.OpCreateTTL, zkembed.OpDelete, zkembed.OpSetData, zkembed.OpCheck,
	zkembed.OpSetACL, zkembed.OpCreateContainer,
}

var others = []zkembed.Op{
	zkembed.OpMulti, zkembed.OpMulti, zkembed.OpMultiRead, zkembed.OpExists, zkembed.OpGetData, zkembed.OpGetChildren,
	zkembed.OpGetChildren2, zkembed.OpGetACL, zkembed.OpSync, zkembed.OpPing, zkembed.OpAuth, zkembed.OpSetWatches,
	zkembed.OpSetWatches2, zkembed.OpAddWatch, zkembed.OpRemoveWatches, zkembed.OpGetEphemerals,
	zkembed.OpGetAllChildrenNumber, zkembed.OpWhoAmI, zkembed.OpCloseSession,
}

func (s *script) request() []byte {
	op := from(s, writes...)
	if s.next(2) == 0 {
		op = from(s, others...)
	}
	b := s.body(op)
	if s.next(24) == 23 {
		b = b[:s.next(len(b)+1)]
	}
	return packet(op, b)
}

// visitor is one client of the fuzzed server.
type visitor struct {
	wire
	s     *zkembed.Server
	reply []byte // to its connect request
}

// connect takes the session up again, or begins one.
func (v *visitor) connect() {
	v.t.Helper()
	if v.reply != nil && v.enter(rehello(v.reply)) {
		return
	}
	require.True(v.t, v.enter(hello(0)))
}

// enter reports whether the server granted the session that was asked for.
func (v *visitor) enter(hello []byte) bool {
	v.t.Helper()
	if v.nc != nil {
		_ = v.nc.Close()
	}
	v.wire = dialled(v.t, v.s, hello)
	var err error
	v.reply, err = v.frame(time.Minute)
	require.NoError(v.t, err)
	return sessionOf(v.reply) != 0
}

// ask returns the reply to a request, or nil when the connection ended.
func (v *visitor) ask(request []byte) []byte {
	if _, err := v.nc.Write(request); err != nil {
		return nil
	}
	for {
		b, err := v.frame(time.Minute)
		if err != nil {
			require.NotErrorIs(v.t, err, os.ErrDeadlineExceeded, "no answer to %q", request)
			return nil
		}
		if xid := int32(binary.BigEndian.Uint32(b)); xid != -1 {
			return b
		}
	}
}

// refresh gives the visitor a session that is sure to last longer than a few
// lags: its follower may know late that it has ended.
func (v *visitor) refresh() {
	sync := packet(zkembed.OpSync, jute("/"))
	for {
		if v.ask(sync) != nil {
			time.Sleep(time.Second) // the leader hears of it
			if v.ask(sync) != nil && v.ask(packet(zkembed.OpPing, nil)) != nil {
				return
			}
		}
		v.connect()
	}
}

// FuzzOperationsLeaveASoundTree checks what clients see against what must be
// true of any tree, after operations and faults of all kinds.
//
// What a run covers depends on the scheduling of goroutines, so minimising an
// input does not help: fuzz with -fuzzminimizetime 10x.
func FuzzOperationsLeaveASoundTree(f *testing.F) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		b := make([]byte, 1500)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		virtual.Test(t, func(t *testing.T) {
			// The reaper comes when it is called: see requireSees.
			s := start(t, zkembed.WithAddr(""), zkembed.WithTick(time.Second), zkembed.WithReaper(0))
			visitors := []*visitor{{s: s, wire: wire{t: t}}, {s: s, wire: wire{t: t}}}
			for _, v := range visitors {
				v.connect()
			}
			var followers []*zkembed.Follower
			sc := &script{b: b[:min(len(b), 4000)], last: "/a"}
			for len(sc.b) > 0 {
				v := from(sc, visitors...)
				switch sc.next(40) {
				case 0, 1:
					s.Reap()
				case 2:
					s.Restart(time.Second)
				case 3:
					if len(followers) < 3 {
						behind := from(sc, 0, time.Millisecond, lag)
						followers = append(followers, s.AddFollower(behind, sessionOf(v.reply)))
					}
				case 4:
					if len(followers) > 0 {
						from(sc, followers...).Stop()
					}
				case 5:
					time.Sleep(time.Duration(sc.next(16)) * time.Second)
				case 6:
					_ = s.ExpireSession(sessionOf(v.reply))
				default:
					if v.ask(sc.request()) == nil {
						v.connect()
					}
				}
			}
			for _, v := range visitors {
				v.refresh()
			}
			synctest.Wait()
			requireSound(t, s)
			for _, v := range visitors {
				requireSees(t, v)
			}
		})
	})
}

// requireSound checks what the server reports of its tree.
func requireSound(t *testing.T, s *zkembed.Server) {
	t.Helper()
	zxid, ids := s.Zxid(), sessionIDs(s)
	children, owned := map[string]int32{}, map[int64][]string{}
	nodes := map[string]bool{"/": true, "/zookeeper": true, "/zookeeper/quota": true, "/zookeeper/config": true}
	for _, n := range s.Nodes() {
		above := n.Path[:max(1, strings.LastIndexByte(n.Path, '/'))]
		require.True(t, nodes[above], "%s has no parent", n.Path) // they come sorted
		nodes[n.Path] = true
		children[above]++
		require.LessOrEqual(t, n.Stat.Czxid, n.Stat.Mzxid, n.Path)
		require.LessOrEqual(t, n.Stat.Czxid, n.Stat.Pzxid, n.Path)
		require.LessOrEqual(t, max(n.Stat.Mzxid, n.Stat.Pzxid), zxid, n.Path)
		require.EqualValues(t, len(n.Data), n.Stat.DataLength, n.Path)
		require.Equal(t, n.Kind == zkembed.Ephemeral, n.Stat.EphemeralOwner != 0, n.Path)
		if id := n.Stat.EphemeralOwner; id != 0 {
			require.Contains(t, ids, id, n.Path)
			owned[id] = append(owned[id], n.Path)
		}
	}
	for _, n := range s.Nodes() {
		require.Equal(t, children[n.Path], n.Stat.NumChildren, n.Path)
	}
	for _, i := range s.Sessions() {
		require.Equal(t, owned[i.ID], i.Ephemerals)
	}
}

// requireSees checks that a client, wherever it is, is shown this tree. No
// session may end meanwhile: a follower would not know.
func requireSees(t *testing.T, v *visitor) {
	t.Helper()
	require.NotNil(t, v.ask(packet(zkembed.OpSync, jute("/"))))
	for _, n := range v.s.Nodes() {
		want, err := binary.Append(nil, binary.BigEndian, n.Stat)
		require.NoError(t, err)
		require.Equal(t, want, v.ask(packet(zkembed.OpExists, append(jute(n.Path), 0)))[16:], n.Path)
	}
}
