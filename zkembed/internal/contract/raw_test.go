package contract

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/coordtest"
)

// patience bounds every wait for a server.
const patience = 20 * time.Second

// raw is a client that sends given requests, one at a time, and hides nothing
// of the answers.
type raw struct {
	nc      net.Conn
	r       *bufio.Reader
	xid     int32
	session int64
	passwd  []byte
	timeout int32
	zxid    int64 // the last one seen
	events  []event
}

type event struct {
	kind int32
	path string
}

func (e event) String() string {
	return [...]string{"?", "created", "deleted", "changed", "children"}[e.kind] + " " + e.path
}

type reply struct {
	zxid int64
	code int32
	body []byte
}

// hello is a connect request.
type hello struct {
	timeout  int32
	session  int64
	passwd   []byte
	seen     int64
	readOnly bool // send the optional byte
}

func (h hello) body() enc {
	if h.passwd == nil {
		h.passwd = make([]byte, 16)
	}
	e := enc{}.i32(0).i64(h.seen).i32(h.timeout).i64(h.session).buf(h.passwd)
	if h.readOnly {
		e = e.flag(false)
	}
	return e
}

func dialTCP(t testing.TB, addr string) *raw {
	t.Helper()
	nc, err := net.DialTimeout("tcp", addr, patience)
	require.NoError(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	return &raw{nc: nc, r: bufio.NewReader(nc)}
}

// greet connects and sends a connect request, which is answered.
func greet(t testing.TB, addr string, h hello) *raw {
	t.Helper()
	c := dialTCP(t, addr)
	require.NoError(t, coordtest.Err(c.hello(h)))
	return c
}

// connect makes a session that outlasts the test.
func connect(t testing.TB, addr string) *raw {
	t.Helper()
	c := greet(t, addr, hello{timeout: 600_000})
	require.NotZero(t, c.session)
	return c
}

// again connects to the session of c.
func (c *raw) again(t testing.TB) *raw {
	t.Helper()
	h := hello{timeout: c.timeout, session: c.session, passwd: c.passwd, seen: c.zxid}
	return greet(t, c.nc.RemoteAddr().String(), h)
}

// hello sends a connect request and returns the length of the reply.
func (c *raw) hello(h hello) (int, error) {
	if err := c.sendFrame(h.body()); err != nil {
		return 0, err
	}
	b, err := c.frame()
	if err != nil {
		return 0, err
	}
	d := &dec{b}
	d.i32()
	c.timeout, c.session, c.passwd = d.i32(), d.i64(), d.buf()
	return len(b), nil
}

func (c *raw) sendFrame(body []byte) error {
	if err := c.nc.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err := c.nc.Write(append(enc{}.i32(int32(len(body))), body...))
	return err
}

func (c *raw) frame() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return nil, err
	}
	b := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err := io.ReadFull(c.r, b)
	return b, err
}

// send sends a request and does not wait.
func (c *raw) send(op int32, body []byte) (xid int32, err error) {
	c.xid++
	xid = c.xid
	switch op {
	case opPing:
		xid = -2
	case opAuth:
		xid = -4
	case opSetWatches, opSetWatches2:
		xid = -8
	}
	return xid, c.sendFrame(append(enc{}.i32(xid).i32(op), body...))
}

// call sends a request and returns its reply; the events that come before the
// reply are kept.
func (c *raw) call(op int32, body []byte) (reply, error) {
	xid, err := c.send(op, body)
	if err != nil {
		return reply{}, err
	}
	for {
		got, r, err := c.receive()
		if err != nil {
			return reply{}, err
		}
		if got == -1 {
			continue
		}
		if got != xid {
			return reply{}, fmt.Errorf("reply to xid %d, want %d", got, xid)
		}
		return r, nil
	}
}

// receive reads one packet. An event is kept, and has xid -1.
func (c *raw) receive() (xid int32, r reply, err error) {
	b, err := c.frame()
	if err != nil {
		return 0, r, err
	}
	d := &dec{b}
	xid, r = d.i32(), reply{zxid: d.i64(), code: d.i32()}
	r.body = d.b
	if xid == -1 {
		e := event{kind: d.i32()}
		if state := d.i32(); state != 3 || r.zxid != -1 {
			return xid, r, fmt.Errorf("event with state %d and zxid %d", state, r.zxid)
		}
		e.path = d.str()
		c.events = append(c.events, e)
	} else if r.zxid > 0 {
		c.zxid = r.zxid
	}
	return xid, r, nil
}

// must is call for a request that has to succeed.
func (c *raw) must(t testing.TB, op int32, body []byte) *dec {
	t.Helper()
	r, err := c.call(op, body)
	require.NoError(t, err)
	require.Zero(t, r.code)
	return &dec{r.body}
}

// code is the error code that a request ends with.
func (c *raw) code(t testing.TB, op int32, body []byte) int32 {
	t.Helper()
	r, err := c.call(op, body)
	require.NoError(t, err)
	return r.code
}

// takeEvents returns the events received since the last time.
func (c *raw) takeEvents() []event {
	e := c.events
	c.events = nil
	return e
}

// dec reads the parts of replies. It panics on a short reply, which fails the
// test.
type dec struct{ b []byte }

func (d *dec) take(n int) []byte {
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *dec) i32() int32  { return int32(binary.BigEndian.Uint32(d.take(4))) }
func (d *dec) i64() int64  { return int64(binary.BigEndian.Uint64(d.take(8))) }
func (d *dec) str() string { return string(d.take(int(d.i32()))) }
func (d *dec) flag() bool  { return d.take(1)[0] != 0 }

func (d *dec) buf() []byte {
	n := d.i32()
	if n < 0 {
		return nil
	}
	return d.take(int(n))
}

func (d *dec) strs() []string {
	v := []string{}
	for range d.i32() {
		v = append(v, d.str())
	}
	return v
}

func (d *dec) acls() []acl {
	v := []acl{}
	for range d.i32() {
		v = append(v, acl{d.i32(), d.str(), d.str()})
	}
	return v
}

type stat struct {
	czxid, mzxid, ctime, mtime  int64
	version, cversion, aversion int32
	owner                       int64
	length, children            int32
	pzxid                       int64
}

func (d *dec) stat() stat {
	return stat{
		d.i64(), d.i64(), d.i64(), d.i64(), d.i32(), d.i32(), d.i32(), d.i64(), d.i32(), d.i32(), d.i64(),
	}
}

// body decodes the body of a successful reply.
func body(op int32, b []byte) string {
	d := &dec{b}
	s := decode(op, d)
	if len(d.b) > 0 {
		s += fmt.Sprintf(" +%d bytes", len(d.b))
	}
	return s
}

func decode(op int32, d *dec) string {
	switch op {
	case opCreate, opSync:
		return d.str()
	case opCreate2, opContainer, opTTL:
		return d.str() + " " + d.stat().String()
	case opExists, opSetData, opSetACL:
		return d.stat().String()
	case opGetData:
		data := d.buf()
		return fmt.Sprintf("%q nil=%t %s", data, data == nil, d.stat())
	case opGetACL:
		var v []string // the identities of auth come in any order
		for _, a := range d.acls() {
			v = append(v, fmt.Sprint(a))
		}
		return sorted(v) + " " + d.stat().String()
	case opGetChildren, opGetEphemerals:
		return sorted(d.strs())
	case opGetChildren2:
		return sorted(d.strs()) + " " + d.stat().String()
	case opAllChildren, opAddWatch:
		return fmt.Sprint(d.i32())
	case opWhoAmI:
		var v []string
		for range d.i32() {
			v = append(v, d.str()+"="+d.str())
		}
		return sorted(v)
	case opMulti, opMultiRead:
		return results(d)
	}
	return ""
}

func results(d *dec) string {
	var b strings.Builder
	for {
		op, done, code := d.i32(), d.flag(), d.i32()
		fmt.Fprintf(&b, "{%d %t %d", op, done, code)
		switch {
		case done:
			return b.String() + "}"
		case op == -1:
			fmt.Fprintf(&b, " %d}", d.i32())
		default:
			fmt.Fprintf(&b, " %s}", decode(op, d))
		}
	}
}

func sorted(v []string) string {
	slices.Sort(v)
	return fmt.Sprintf("%q", v)
}

func (s stat) String() string {
	return fmt.Sprintf("stat(c%d m%d ct%d mt%d v%d cv%d av%d own%#x len%d ch%d p%d)", s.czxid, s.mzxid,
		s.ctime, s.mtime, s.version, s.cversion, s.aversion, s.owner, s.length, s.children, s.pzxid)
}
