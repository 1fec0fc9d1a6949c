package attend_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/attend"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestMain(m *testing.M) {
	zktest.RegisterChild("holder", holder)
	zktest.RegisterChild("stranger", stranger)
	zktest.RegisterChild("crowd", crowd)
	zktest.RegisterChild("attendant", attendantMain)
	zktest.Main(m)
}

// T is a session timeout that no test waits for.
const T = time.Minute

// running is an attendant under test.
type running struct {
	*attend.Attendant
	socket string
	end    func() // returns when it has ended
}

// start starts an attendant at a socket.
func start(t *testing.T, socket string, o attend.Options) running {
	t.Helper()
	// A process that is being forked has the socket of the attendant before for
	// a moment, until it runs its program.
	var l *net.UnixListener
	zktest.Eventually(t, coordtest.Soon, func() (free bool) {
		var err error
		l, err = attend.Listen(socket, 0o666)
		return err == nil
	}, "the socket is free")
	a := attend.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	served := coordtest.Go(func() error { return a.Serve(ctx, l) })
	end := sync.OnceFunc(func() {
		cancel()
		require.NoError(t, zktest.Receive(t, coordtest.Soon, served, "the attendant ends"))
	})
	t.Cleanup(end)
	return running{a, socket, end}
}

// attendant starts one at a socket of its own.
func attendant(t *testing.T, o attend.Options) running {
	t.Helper()
	return start(t, filepath.Join(folder(t), "s"), o)
}

// attendantMain is an attendant that is a process of its own.
func attendantMain(args []string) {
	l, err := attend.Listen(args[0], 0o600)
	zktest.ExitOn(err)
	fmt.Println("listens")
	zktest.ExitOn(attend.New(attend.Options{Grace: hasty}).Serve(context.Background(), l))
}

// service starts an attendant as a process.
func service(t *testing.T, socket string) *zktest.ChildProcess {
	t.Helper()
	p := zktest.Child(t, "attendant", socket)
	require.Equal(t, "listens", p.Line(coordtest.Soon))
	return p
}

// attended waits until so many sessions are.
func attended(t *testing.T, socket string, n int) {
	t.Helper()
	zktest.Eventually(t, coordtest.Soon, func() bool {
		sessions, err := attend.Check(coordtest.Limited(t), socket)
		return err == nil && sessions == n
	}, "%d sessions are attended", n)
}

// folder is one whose name is short enough for a socket.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "attend")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// silent is a socket that accepts connections, if only in the kernel, and does
// not answer by itself.
func silent(t *testing.T) (socket string, accept func() net.Conn) {
	t.Helper()
	socket = filepath.Join(folder(t), "s")
	l, err := net.Listen("unix", socket)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return socket, func() net.Conn {
		conn, err := l.Accept()
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
}

// news gives the events of an attended session.
func news(events chan event.Event) coord.Option {
	return coord.WithObserver(func(e event.Event) {
		if e.Kind == event.SessionAttended {
			events <- e
		}
	})
}

// holder is a process that holds a lock, for as long as it lives or until it is
// told to end, which it does well if it holds the lock then. It says so when it
// is attended, and starts a program that outlives it, if it is told to.
func holder(args []string) {
	servers, path, socket, program := args[0], args[1], args[2], args[3]
	events, shared := make(chan event.Event, 8), make(chan *os.File, 1)
	c, err := coord.Open(context.Background(), servers, coord.WithSessionTimeout(T), coord.WithTick(zktest.DefaultTick),
		news(events), coord.WithAttendant(socket, func(f *os.File) { offer(shared, f) }))
	zktest.ExitOn(err)
	m, err := lock.New(c, path)
	zktest.ExitOn(err)
	h, err := m.Acquire(context.Background())
	zktest.ExitOn(err)
	e := <-events
	zktest.ExitOn(e.Err)
	pid := 0
	if program != "" {
		cmd := exec.Command("sleep", "1000")
		if program == "with the connection" {
			cmd.ExtraFiles = []*os.File{<-shared}
		}
		zktest.ExitOn(cmd.Start())
		pid = cmd.Process.Pid
	}
	fmt.Println(pid)
	bufio.NewScanner(os.Stdin).Scan()
	zktest.ExitOn(h.Err())
	zktest.ExitOn(c.Close(context.Background()))
	fmt.Println("closed")
}

// offer shares the first connection; it does not wait.
func offer(shared chan<- *os.File, f *os.File) {
	select {
	case shared <- f:
	default:
		_ = f.Close()
	}
}

// crowd is a process with many clients; each holds a lock.
func crowd(args []string) {
	servers, path, socket := args[0], args[1], args[2]
	n, err := strconv.Atoi(args[3])
	zktest.ExitOn(err)
	events := make(chan event.Event, n)
	for i := range n {
		c, err := coord.Open(context.Background(), servers, coord.WithSessionTimeout(T), news(events),
			coord.WithAttendant(socket))
		zktest.ExitOn(err)
		m, err := lock.New(c, fmt.Sprintf("%s/%d", path, i))
		zktest.ExitOn(err)
		_, err = m.Acquire(context.Background())
		zktest.ExitOn(err)
	}
	for range n {
		e := <-events
		zktest.ExitOn(e.Err)
	}
	fmt.Println("attended")
	bufio.NewScanner(os.Stdin).Scan()
}

// hold starts a holder, and returns when it holds and is attended. program is
// the process id of what it has started.
func (a running) hold(
	t *testing.T, w *zktest.World, rel string, starts ...string,
) (p *zktest.ChildProcess, program int) {
	t.Helper()
	w.SetTimeout(T)
	p = zktest.Child(t, "holder", w.ConnectString(), w.Path(rel), a.socket, append(starts, "")[0])
	program, err := strconv.Atoi(p.Line(coordtest.Soon))
	require.NoError(t, err)
	if program != 0 {
		process, err := os.FindProcess(program)
		require.NoError(t, err)
		t.Cleanup(func() { _ = process.Kill() })
	}
	return p, program
}

// free waits until nobody holds or waits for a lock.
func free(t *testing.T, w *zktest.World, rel string) {
	t.Helper()
	zktest.Eventually(t, coordtest.Soon, func() bool { return claims(t, w, rel) == 0 }, "the lock %s is free", rel)
}

func claims(t *testing.T, w *zktest.World, rel string) int {
	t.Helper()
	names, _, err := w.Admin().Children(w.Path(rel))
	if err != nil {
		return 0
	}
	return len(names)
}

// open returns a client with a long session, and the events of its attendance.
func (a running) open(t *testing.T, w *zktest.World, opts ...coord.Option) (*coord.Client, chan event.Event) {
	t.Helper()
	w.SetTimeout(T)
	events := make(chan event.Event, 8)
	return coordtest.Open(t, w.ConnectString(), append([]coord.Option{
		coord.WithSessionTimeout(T), news(events), coord.WithAttendant(a.socket),
	}, opts...)...), events
}

// next is the next event of a session's attendance.
func next(t *testing.T, events chan event.Event) event.Event {
	t.Helper()
	return zktest.Receive(t, coordtest.Soon, events, "an event")
}
