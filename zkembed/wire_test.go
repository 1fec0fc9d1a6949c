package zkembed_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// frame puts a packet's length before it.
func frame(body []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// hello asks for a new session.
func hello(seen int64) []byte {
	b := make([]byte, 44)
	binary.BigEndian.PutUint64(b[4:], uint64(seen))
	binary.BigEndian.PutUint32(b[12:], 10_000)
	binary.BigEndian.PutUint32(b[24:], 16)
	return frame(b)
}

// packet is a request.
func packet(op zkembed.Op, body []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, 1)
	b = binary.BigEndian.AppendUint32(b, uint32(op))
	return frame(append(b, body...))
}

func jute(s string) []byte { return frame([]byte(s)) }

func FuzzNoBytesFromAClientUpsetTheServer(f *testing.F) {
	s, err := zkembed.Start(zkembed.WithAddr(""))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.Close() })
	for _, seed := range [][]byte{
		[]byte("ruok"),
		frame(nil),
		{0xff, 0xff, 0xff, 0xff},
		{0, 0x0f, 0xff, 0xff, 1},
		hello(0),
		append(hello(0), packet(zkembed.OpPing, nil)...),
		append(hello(0), packet(zkembed.OpGetChildren, append(jute("/"), 1))...),
		append(hello(0), packet(zkembed.OpSetWatches, make([]byte, 20))...),
		append(hello(0), packet(zkembed.OpSetWatches2, append(make([]byte, 8), 0x7f, 0xff, 0xff, 0xff))...),
		append(hello(0), packet(zkembed.OpMulti, []byte{0, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0, 0, 1, '/'})...),
		append(hello(0), packet(zkembed.OpAddWatch, append(jute("/"), 0, 0, 0, 1))...),
		append(hello(0), packet(zkembed.OpCreate, append(jute("/a"), 0xff, 0xff, 0xff, 0xff, 0x10, 0, 0, 0))...),
		append(hello(0), packet(zkembed.OpAuth, append([]byte{0, 0, 0, 0}, jute("digest")...))...),
		append(hello(0), packet(zkembed.OpCloseSession, nil)...),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		nc, err := s.Dial("", "", time.Second)
		require.NoError(t, err)
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = io.Copy(io.Discard, nc) })
		_, _ = nc.Write(b)
		_ = nc.Close()
		wg.Wait()
		require.Equal(t, "imok", fourLetters(t, s, "ruok"))
	})
}

// A client that sends requests and never reads is made to wait. It costs the
// server no memory, and its other clients no time.
func TestAClientThatDoesNotReadIsHeldBack(t *testing.T) {
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
		require.NoError(t, coordtest.Err(c.Create("/big", make([]byte, 1<<19), 0, open)))
		w, _ := greeted(t, s)
		before := s.Counts()
		stuck := coordtest.Go(func() (err error) {
			for err == nil {
				_, err = w.nc.Write(packet(zkembed.OpGetData, append(jute("/big"), make([]byte, 1<<16)...)))
			}
			return err
		})
		synctest.Wait()
		require.Less(t, s.Counts().Since(before)[zkembed.OpGetData], 20)
		create(t, c, "/other", 0)
		time.Sleep(10*T + time.Minute) // its session expires, and the server cuts it
		require.Error(t, <-stuck)
		require.Len(t, s.Sessions(), 1)
	})
}

// All clients wait while the list is read, so the time must not grow with the
// square of its length.
func TestTheLongestACLIsReadAtOnce(t *testing.T) {
	s := start(t, zkembed.WithAddr(""))
	w := dialled(t, s, hello(0))
	require.NoError(t, coordtest.Err(w.frame(time.Minute)))
	w.send(packet(zkembed.OpAuth, append(append(make([]byte, 4), jute("digest")...), jute("u:p")...)))
	require.NoError(t, coordtest.Err(w.frame(time.Minute)))
	const n = 60_000
	list := binary.BigEndian.AppendUint32(nil, n)
	for i := range uint32(n) {
		list = binary.BigEndian.AppendUint32(list, i)
		list = append(append(list, jute("auth")...), jute("")...)
	}
	fast := func(path string) bool {
		begun := time.Now()
		create := append(append(jute(path), 0xff, 0xff, 0xff, 0xff), list...)
		w.send(packet(zkembed.OpCreate, append(create, 0, 0, 0, 0)))
		require.NoError(t, coordtest.Err(w.frame(time.Minute)))
		return time.Since(begun) < 2*time.Second
	}
	require.True(t, fast("/a") || fast("/b") || fast("/c"), "a busy machine is slow now and then")
	require.Len(t, s.Nodes()[0].ACL, n)
}

func TestCloseEndsEverythingAndCanBeRepeated(t *testing.T) {
	s, err := zkembed.Start(zkembed.WithTick(10 * time.Millisecond))
	require.NoError(t, err)
	s.AddFollower(time.Hour)
	s.Partition(zkembed.Cut{NewConns: zkembed.AcceptDial})
	conns := make([]net.Conn, 20)
	for i := range conns {
		if i%2 == 0 {
			conns[i], err = net.Dial("tcp", s.Addr())
		} else {
			conns[i], err = s.Dial("", "", time.Second)
		}
		require.NoError(t, err)
		require.NoError(t, coordtest.Err(conns[i].Write(hello(0))))
	}
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	for _, nc := range conns {
		require.Error(t, coordtest.Err(nc.Read(make([]byte, 1))))
		require.NoError(t, nc.Close())
	}
	require.Error(t, coordtest.Err(s.Dial("", "", 0)))
	near, far := net.Pipe()
	s.ServeConn(far)
	require.ErrorIs(t, coordtest.Err(near.Read(make([]byte, 1))), io.EOF)
}

func TestClientsOverTCPCountTogetherWithoutALoss(t *testing.T) {
	s := start(t)
	const clients, each = 8, 100
	first := zktest.Connect(t, s.Addr(), T)
	create(t, first, "/n", 0)
	var all errgroup.Group
	for range clients {
		c := zktest.Connect(t, s.Addr(), T)
		all.Go(func() error { return increment(c, each) })
	}
	require.NoError(t, all.Wait())
	_, stat, err := first.Get("/n")
	require.NoError(t, err)
	require.EqualValues(t, clients*each, stat.Version)
	require.EqualValues(t, clients*each, stat.DataLength)
}

// increment makes the data of /n longer by compare-and-set.
func increment(c *zk.Conn, times int) error {
	for done := 0; done < times; {
		data, stat, err := c.Get("/n")
		if err != nil {
			return err
		}
		switch _, err = c.Set("/n", append(data, 'x'), stat.Version); {
		case err == nil:
			done++
		case !errors.Is(err, zk.ErrBadVersion):
			return err
		}
	}
	return nil
}

func TestOptionsAreCheckedAtTheStart(t *testing.T) {
	for _, o := range []zkembed.Option{
		zkembed.WithAddr("nowhere"), zkembed.WithTick(0), zkembed.WithTick(-time.Second),
		zkembed.WithSessionTimeouts(2*time.Second, time.Second), zkembed.WithSessionTimeouts(-1, 0),
		zkembed.WithReaper(-1), zkembed.WithLogger(nil),
	} {
		require.ErrorContains(t, coordtest.Err(zkembed.Start(o)), "zkembed: ")
	}
}

func TestAConnectionThatNeverFinishesAPacketIsClosed(t *testing.T) {
	for name, test := range map[string]struct {
		sent  []byte
		after time.Duration
	}{
		"nothing":           {nil, 10 * time.Second},
		"half a length":     {hello(0)[:2], 10 * time.Second},
		"half a hello":      {hello(0)[:20], 10 * time.Second},
		"half a word":       {[]byte("ru"), 10 * time.Second},
		"half a request":    {append(hello(0), packet(zkembed.OpGetData, jute("/"))[:10]...), 11 * time.Second},
		"no request at all": {hello(0), 11 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
				nc, err := s.Dial("", "", time.Second)
				require.NoError(t, err)
				defer nc.Close()
				require.NoError(t, coordtest.Err(nc.Write(test.sent)))
				begun := time.Now()
				require.NoError(t, nc.SetReadDeadline(begun.Add(time.Hour)))
				require.NoError(t, coordtest.Err(io.Copy(io.Discard, nc))) // its end
				require.InDelta(t, test.after, time.Since(begun), float64(time.Second))
				require.Empty(t, s.Sessions())
			})
		})
	}
}

func TestASlowHandshakeIsWaitedForAsLongAsThereIsMore(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *zkembed.Server) {
		nc, err := s.Dial("", "", time.Second)
		require.NoError(t, err)
		defer nc.Close()
		for _, b := range hello(0) {
			time.Sleep(9 * time.Second)
			require.NoError(t, coordtest.Err(nc.Write([]byte{b})))
		}
		synctest.Wait()
		require.Len(t, s.Sessions(), 1)
		require.NoError(t, coordtest.Err(io.ReadFull(nc, make([]byte, 40))))
		time.Sleep(9 * time.Second)
		require.Len(t, s.Sessions(), 1)
	})
}

// multiRead asks for a node's data many times.
func multiRead(path string, times int) []byte {
	var b []byte
	for range times {
		b = append(binary.BigEndian.AppendUint32(b, uint32(zkembed.OpGetData)), 0, 0xff, 0xff, 0xff, 0xff)
		b = append(append(b, jute(path)...), 0)
	}
	return packet(zkembed.OpMultiRead, append(b, 0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff))
}

func TestOneConnectionHasABoundedAmountUnread(t *testing.T) {
	withClient(t, func(t *testing.T, s *zkembed.Server, c *zk.Conn) {
		require.NoError(t, coordtest.Err(c.Create("/big", make([]byte, 1e6), 0, open)))
		long, _ := greeted(t, s)
		long.send(multiRead("/big", 54))
		require.Equal(t, zkembed.CodeSystemError, long.code())

		const replies, each = 6, 20 << 20
		unread, _ := greeted(t, s)
		before := s.Counts()
		go func() {
			for range replies {
				_, _ = unread.nc.Write(multiRead("/big", 20))
			}
		}()
		synctest.Wait()
		require.EqualValues(t, 1, s.Counts().Since(before)[zkembed.OpMultiRead])
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		require.Less(t, m.HeapAlloc, uint64(2*each+30<<20))
		for range replies { // a client that reads is served
			b, err := unread.frame(time.Second)
			require.NoError(t, err)
			require.Greater(t, len(b), each/2)
		}
	})
}
