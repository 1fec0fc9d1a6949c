package coord_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

// oldLeader is the server that a client is attached to. Once it is superseded
// it goes on as a leader does that has not heard of the next one: it answers
// pings and reads, and acknowledges syncs, but no write, for which it has no
// majority, nor what comes behind one. All but the syncs is what an isolated
// follower does, and is left to it.
type oldLeader struct {
	bubble
	follower *zkembed.Follower

	mu         sync.Mutex
	superseded bool
	blocked    bool // by a write
}

// attached is a client's connection to an old leader.
type attached struct {
	net.Conn // what the leader sends comes out here
	leader   *oldLeader
	server   net.Conn

	mu sync.Mutex // orders what goes into back
	in net.Conn   // and here it is put in
}

func (o *oldLeader) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	server, err := o.Server.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	a := &attached{Conn: near, leader: o, server: server, in: far}
	go a.forward()
	return a, nil
}

// forward passes the server's packets on, each of which is one Write of its.
func (a *attached) forward() {
	defer func() { _ = a.in.Close() }()
	packet := make([]byte, 1<<20)
	for {
		n, err := a.server.Read(packet)
		if err == nil {
			err = a.put(packet[:n])
		}
		if err != nil {
			return
		}
	}
}

func (a *attached) put(packet []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, err := a.in.Write(packet)
	return err
}

// Write gets one packet of the client.
func (a *attached) Write(packet []byte) (int, error) {
	if reply := a.leader.acknowledge(packet); reply != nil {
		return len(packet), a.put(reply)
	}
	return a.server.Write(packet)
}

func (a *attached) Close() error {
	_ = a.server.Close()
	return a.Conn.Close()
}

// acknowledge returns the reply to a sync that the old leader gives by itself.
func (o *oldLeader) acknowledge(packet []byte) []byte {
	const xid, op, body = 4, 8, 12
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.superseded || len(packet) < body {
		return nil
	}
	switch zkembed.Op(binary.BigEndian.Uint32(packet[op:])) {
	case zkembed.OpCreate, zkembed.OpDelete, zkembed.OpSetData, zkembed.OpMulti, zkembed.OpCreateContainer:
		o.blocked = true
	case zkembed.OpSync:
		if o.blocked {
			return nil
		}
		reply := binary.BigEndian.AppendUint32(nil, uint32(16+len(packet)-body))
		reply = append(reply, packet[xid:op]...)
		reply = binary.BigEndian.AppendUint64(reply, uint64(o.follower.Zxid()))
		reply = append(reply, 0, 0, 0, 0)
		return append(reply, packet[body:]...)
	}
	return nil
}

func (o *oldLeader) supersede() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.superseded = true
	o.follower.Isolate()
}

// syncRequest asks for a sync of the root.
var syncRequest = []byte{0, 0, 0, 13, 0, 0, 0, 1, 0, 0, 0, byte(zkembed.OpSync), 0, 0, 0, 1, '/'}

// A leader that stood still while another was elected acknowledges syncs as if
// nothing had happened, for as long as it takes it to find out. A hold that
// believed them would outlive its session.
func TestAHoldAtASupersededLeaderThatAcknowledgesSyncsEndsBeforeTheNextIsGranted(t *testing.T) {
	for after := 300 * time.Millisecond; after < T/2; after += 1700 * time.Millisecond {
		t.Run(fmt.Sprint("superseded after ", after), func(t *testing.T) {
			inBubble(t, func(b bubble) {
				old := &oldLeader{bubble: b}
				holder, other := b.Open(coord.WithTick(tick), coord.WithDialer(old.dial)), b.Open(coord.WithTick(tick))
				h := b.acquire(holder)
				old.follower = b.Server.AddFollower(time.Millisecond, h.Session())
				time.Sleep(after)
				old.supersede()
				require.NotNil(t, old.acknowledge(syncRequest), "it is no such leader")
				next, err := other.Acquire(b.Context(), mutex, first)
				require.NoError(t, err)
				require.True(t, ended(h), "two holders")
				require.ErrorIs(t, h.Err(), coord.ErrWindowOver)
				require.Greater(t, next.Token(), h.Token())
				old.follower.Rejoin()
				require.NoError(t, next.Release(b.Context()))
			})
		})
	}
}
