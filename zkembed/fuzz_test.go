package zkembed_test

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/virtual"
	"github.com/zkcoord/zkcoord/zkembed"
	"github.com/zkcoord/zkcoord/zkembed/internal/contract"
)

// choices are random numbers that the fuzzer chooses, a byte for each, and then
// zeros.
type choices []byte

// Uint64 has the byte where [rand.Rand.IntN] looks, at one end or the other.
// What is between keeps it from drawing again.
func (c *choices) Uint64() uint64 {
	v := uint64(0)
	if len(*c) > 0 {
		v, *c = uint64((*c)[0]), (*c)[1:]
	}
	return v<<56 | 0x55555555555500 | v
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
		b := make([]byte, 2500)
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
			left := choices(b[:min(len(b), 6000)])
			r := rand.New(&left)
			g := contract.NewGenerator(r)
			for len(left) > 0 {
				v := visitors[r.IntN(len(visitors))]
				switch r.IntN(40) {
				case 0, 1:
					s.Reap()
				case 2:
					s.Restart(time.Second)
				case 3:
					if len(followers) < 3 {
						behind := []time.Duration{0, time.Millisecond, lag}[r.IntN(3)]
						followers = append(followers, s.AddFollower(behind, sessionOf(v.reply)))
					}
				case 4:
					if len(followers) > 0 {
						followers[r.IntN(len(followers))].Stop()
					}
				case 5:
					time.Sleep(time.Duration(r.IntN(16)) * time.Second)
				case 6:
					_ = s.ExpireSession(sessionOf(v.reply))
				case 7:
					v.ask(packet(zkembed.OpCloseSession, nil))
					v.connect()
				default:
					op, body := g.Request()
					if r.IntN(24) == 23 {
						body = body[:r.IntN(len(body)+1)]
					}
					reply := v.ask(packet(zkembed.Op(op), body))
					if reply == nil {
						v.connect()
					}
					g.Learn(string(reply))
					g.Zxid = s.Zxid()
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
