package attend_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/attend"
	protocol "github.com/zkcoord/zkcoord/coord/internal/attend"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

var (
	kills   = flag.Int("kills", 2, "how many holders are killed, one after the other")
	clients = flag.Int("clients", 40, "how many clients are killed together")
)

// The session timeout is a minute: the next in line holds long before. With
// -kills 100 -v the test tells the distribution.
func TestF63TheNextInLineHoldsSoonAfterAKill(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		a := attendant(t, attend.Options{})
		c, _ := a.open(t, w)
		m, err := lock.New(c, w.Path("l"))
		require.NoError(t, err)
		var took []time.Duration
		for range *kills {
			p, _ := a.hold(t, w, "l")
			granted := make(chan *coord.Hold, 1)
			go func() {
				h, err := m.Acquire(context.Background())
				if err == nil {
					granted <- h
				}
			}()
			zktest.Eventually(t, coordtest.Soon, func() bool { return claims(t, w, "l") == 2 }, "the next one waits")
			killed := time.Now()
			p.Kill()
			h := zktest.Receive(t, T/2, granted, "the next one holds")
			took = append(took, time.Since(killed))
			require.NoError(t, h.Release(coordtest.Limited(t)))
		}
		slices.Sort(took)
		t.Logf("%d kills: next holder after %v (median), %v (longest)", len(took), took[len(took)/2], took[len(took)-1])
		zktest.Eventually(t, coordtest.Soon, func() bool { return a.Stats().Closed == *kills }, "the attendant knows")
		s := a.Stats()
		require.Equal(t, [2]int{*kills, 0}, [2]int{s.Deaths, s.Failed})
		require.GreaterOrEqual(t, s.Took, time.Duration(*kills)*attend.DefaultGrace)
	})
}

// hasty is a grace that no test need wait for.
const hasty = time.Millisecond

// Others that die meanwhile show that the attendant would have noticed. With
// FAULTS_LONG the process is stopped for 20 s, of a minute.
func TestF63AProcessThatIsStoppedIsNotDeadAndHolds(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		a := attendant(t, attend.Options{Grace: hasty})
		stopped, _ := a.hold(t, w, "stopped")
		require.NoError(t, stopped.Stop())
		if os.Getenv("FAULTS_LONG") != "" {
			<-time.After(20 * time.Second)
		}
		for range 3 {
			dies, _ := a.hold(t, w, "dies")
			dies.Kill()
			free(t, w, "dies")
		}
		require.Equal(t, 1, claims(t, w, "stopped"))
		require.Equal(t, 1, a.Stats().Sessions)
		require.NoError(t, stopped.Continue())
		stopped.Send("end")
		require.Equal(t, "closed", stopped.Line(coordtest.Soon))
		free(t, w, "stopped")
		require.Equal(t, 3, a.Stats().Deaths)
	})
}

func TestAProgramThatHasTheConnectionKeepsTheSession(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		a := attendant(t, attend.Options{Grace: hasty})
		p, program := a.hold(t, w, "l", "with the connection")
		p.Kill()
		dies, _ := a.hold(t, w, "dies")
		dies.Kill()
		free(t, w, "dies")
		require.Equal(t, 1, claims(t, w, "l"), "the program may still act")
		require.NoError(t, syscall.Kill(program, syscall.SIGKILL))
		free(t, w, "l")
	})
}

func TestAProgramThatWasNotGivenTheConnectionDoesNotKeepTheSession(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	a := attendant(t, attend.Options{Grace: hasty})
	p, program := a.hold(t, w, "l", "without the connection")
	p.Kill()
	free(t, w, "l")
	require.NoError(t, syscall.Kill(program, 0), "the program lives")
}

func TestAClientThatIsClosedLeavesNothingToDo(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		a := attendant(t, attend.Options{Grace: hasty})
		p, _ := a.hold(t, w, "l")
		require.Equal(t, 1, a.Stats().Sessions)
		p.Send("end")
		require.Equal(t, "closed", p.Line(coordtest.Soon))
		free(t, w, "l")
		zktest.Eventually(t, coordtest.Soon, func() bool { return a.Stats().Connections == 0 }, "the connection ends")
		require.Zero(t, a.Stats().Deaths)
	})
}

// The end of an attendant closes no session, and the next one notices the next
// death.
func TestAnAttendantThatIsRestartedIsTold(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		a := attendant(t, attend.Options{Grace: hasty})
		c, events := a.open(t, w)
		require.NoError(t, next(t, events).Err)
		p, _ := a.hold(t, w, "l")
		session := c.Info().SessionID
		a.end()
		require.Error(t, next(t, events).Err)
		require.Equal(t, attend.Stats{Deaths: 0}, a.Stats())

		again := start(t, a.socket, attend.Options{Grace: hasty})
		require.NoError(t, next(t, events).Err)
		require.Equal(t, session, c.Info().SessionID)
		zktest.Eventually(t, coordtest.Soon, func() bool { return again.Stats().Sessions == 2 }, "both are told again")
		require.Equal(t, 1, claims(t, w, "l"))
		p.Kill()
		free(t, w, "l")
		require.NoError(t, coordtest.Write(coordtest.Limited(t), c))
		require.Equal(t, session, c.Info().SessionID)
	})
}

// Whatever has kept an attendant from its work, no hold is lost, and the next
// death is noticed.
func TestAnAttendantThatWasAwayNoticesTheNextDeath(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		a := running{socket: folder(t) + "/s"}
		process := service(t, a.socket)
		restart := func() {
			process.Kill()
			process = service(t, a.socket)
		}
		stays, _ := a.hold(t, w, "stays")
		for reason, is := range map[string]struct{ away, back func(t *testing.T) }{
			"killed": {away: func(*testing.T) { process.Kill() }, back: func(*testing.T) { restart() }},
			"stopped, while a process dies": {away: func(t *testing.T) {
				p, _ := a.hold(t, w, "meanwhile")
				require.NoError(t, process.Stop())
				p.Kill()
			}, back: func(t *testing.T) {
				require.Equal(t, 1, claims(t, w, "meanwhile"))
				require.NoError(t, process.Continue())
				free(t, w, "meanwhile")
			}},
			"without its socket, which a new client needs": {away: func(t *testing.T) {
				p, _ := a.hold(t, w, "meanwhile")
				require.NoError(t, os.Remove(a.socket))
				require.ErrorIs(t, coordtest.Err(attend.Check(coordtest.Limited(t), a.socket)), os.ErrNotExist)
				p.Kill()
				free(t, w, "meanwhile")
			}, back: func(t *testing.T) {
				c, events := a.open(t, w)
				require.ErrorContains(t, next(t, events).Err, a.socket)
				restart()
				require.NoError(t, next(t, events).Err)
				attended(t, a.socket, 3) // before it could count for one that is yet to tell again
				require.NoError(t, c.Close(coordtest.Limited(t)))
			}},
		} {
			t.Run(reason, func(t *testing.T) {
				dies, _ := a.hold(t, w, "dies")
				is.away(t)
				require.Equal(t, [2]int{1, 1}, [2]int{claims(t, w, "stays"), claims(t, w, "dies")})
				is.back(t)
				attended(t, a.socket, 2)
				dies.Kill()
				free(t, w, "dies")
				require.Equal(t, 1, claims(t, w, "stays"))
			})
		}
		stays.Send("end")
		require.Equal(t, "closed", stays.Line(coordtest.Soon))
		free(t, w, "stays")
	})
}

func TestTheNextSessionIsToldInPlaceOfTheFormer(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		a := attendant(t, attend.Options{Grace: hasty})
		c, events := a.open(t, w)
		former := next(t, events).Session
		w.ExpireSession(former)
		require.NoError(t, coordtest.Write(coordtest.Limited(t), c))
		zktest.Eventually(t, coordtest.Soon, func() bool { return c.Info().SessionID != former && a.Stats().Sessions == 1 },
			"the next session")
		require.Zero(t, a.Stats().Deaths)
	})
}

// A client without an attendant says so once, and goes on.
func TestNothingDependsOnTheAttendant(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	socket := folder(t) + "/s"
	var log bytes.Buffer
	c, events := running{socket: socket}.open(t, w, coord.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	m, err := lock.New(c, w.Path("l"))
	require.NoError(t, err)
	for range 3 {
		h := coordtest.Acquire(t, m)
		require.NoError(t, h.Release(coordtest.Limited(t)))
	}
	e := next(t, events)
	require.ErrorContains(t, e.Err, socket)
	require.Equal(t, c.Info().SessionID, e.Session)

	start(t, socket, attend.Options{})
	require.NoError(t, next(t, events).Err)
	require.Empty(t, events)
	require.NoError(t, c.Close(coordtest.Limited(t)))
	require.Equal(t, 1, strings.Count(log.String(), "no attendant"))
}

func TestAnAttendantThatHangsHoldsUpNoClient(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	socket, _ := silent(t)
	c, _ := running{socket: socket}.open(t, w)
	require.NoError(t, coordtest.Write(coordtest.Limited(t), c))
	require.NoError(t, c.Close(coordtest.Limited(t)))
}

// The attendant would take the end of the connection for a death: it has heard
// of the session, even if it has not answered.
func TestAConnectionToAnAttendantThatDoesNotAnswerIsKept(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	socket, accept := silent(t)
	_, events := running{socket: socket}.open(t, w)
	conn := accept()
	require.ErrorIs(t, next(t, events).Err, protocol.ErrNoAnswer)
	require.NoError(t, protocol.Read(conn, &protocol.Message{}, nil))
	require.NoError(t, protocol.Write(conn, protocol.Answer{}))
	require.NoError(t, next(t, events).Err)
}

func TestClientsBeyondTheLimitGoOnAndHaveTheirTurn(t *testing.T) {
	for limit, options := range map[string]attend.Options{"one user's": {MostOfUser: 1}, "of all": {Most: 1}} {
		t.Run(limit, func(t *testing.T) {
			w := zktest.New(t, zktest.Embedded)
			a := attendant(t, options)
			first, attended := a.open(t, w)
			require.NoError(t, next(t, attended).Err)
			second, events := a.open(t, w)
			require.ErrorContains(t, next(t, events).Err, "full")
			require.NoError(t, coordtest.Write(coordtest.Limited(t), second))
			require.ErrorIs(t, coordtest.Err(attend.Check(coordtest.Limited(t), a.socket)), attend.ErrRefused)
			require.NoError(t, first.Close(coordtest.Limited(t)))
			require.NoError(t, next(t, events).Err)
			require.Equal(t, 1, a.Stats().Sessions)
		})
	}
}

// talk returns a connection on which the test speaks for itself.
func (a running) talk(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", a.socket)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(coordtest.Soon)))
	return conn
}

// told is talk once the attendant was told of a session.
func (a running) told(t *testing.T) net.Conn {
	t.Helper()
	conn := a.talk(t)
	require.Empty(t, says(t, conn, protocol.Message{Attend: &someSession}))
	return conn
}

// says sends a message and returns the answer.
func says(t *testing.T, conn net.Conn, m protocol.Message) (answer string) {
	t.Helper()
	require.NoError(t, protocol.Write(conn, m))
	var a protocol.Answer
	require.NoError(t, protocol.Read(conn, &a, nil))
	return a.Error
}

var someSession = protocol.Session{Servers: []string{"127.0.0.1:1"}, ID: 7, Password: []byte("open sesame"), Timeout: T}

func TestABadFrameEndsItsConnectionAndNothingElse(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	a := attendant(t, attend.Options{Grace: hasty})
	p, _ := a.hold(t, w, "l")
	for name, bytes := range map[string]string{
		"another version": "\x02\x00\x00\x02{}", "too large": "\x01\x01\x00\x01", "no JSON": "\x01\x00\x00\x02{{",
		"no message": "\x01\x00\x00\x02{}",
		"HTTP":       "GET / HTTP/1.1\r\n\r\n", "no session": "\x01\x00\x00\x0d{\"attend\":{}}",
		"other types": "\x01\x00\x00\x0c{\"attend\":7}",
	} {
		t.Run(name, func(t *testing.T) {
			refused, conn := a.Stats().Refused, a.told(t)
			require.NoError(t, coordtest.Err(conn.Write([]byte(bytes))))
			var answer protocol.Answer
			require.NoError(t, protocol.Read(conn, &answer, nil))
			require.NotEmpty(t, answer.Error)
			_ = conn.Close()
			zktest.Eventually(t, coordtest.Soon, func() bool { return a.Stats().Connections == 1 }, "the connection ends")
			require.Equal(t, refused+1, a.Stats().Refused)
		})
	}
	require.Equal(t, 1, a.Stats().Sessions)
	require.Zero(t, a.Stats().Deaths, "what speaks wrongly lives")
	require.Equal(t, 1, claims(t, w, "l"))
	p.Kill()
	free(t, w, "l")
}

// A process that died while it wrote is dead.
func TestAFrameThatIsCutShortByADeathIsOne(t *testing.T) {
	a := attendant(t, attend.Options{})
	conn := a.told(t)
	require.NoError(t, coordtest.Err(conn.Write([]byte{1, 0})))
	require.NoError(t, conn.Close())
	zktest.Eventually(t, coordtest.Soon, func() bool { return a.Stats().Deaths == 1 }, "the death is noticed")
}

func TestAProcessThatDiesWithoutReadingTheAnswerIsDead(t *testing.T) {
	a := attendant(t, attend.Options{})
	conn := a.talk(t)
	require.NoError(t, protocol.Write(conn, protocol.Message{Attend: &someSession}))
	require.Empty(t, says(t, conn, protocol.Message{Check: true})) // the answer to the message before
	zktest.Eventually(t, coordtest.Soon, func() bool { return a.Stats().Sessions == 1 }, "it is attended")
	require.NoError(t, conn.Close())
	zktest.Eventually(t, coordtest.Soon, func() bool { return a.Stats().Deaths == 1 }, "the death is noticed")
}

// Who has many processes die does not get round the limits.
func TestAConnectionCountsUntilItsSessionIsClosed(t *testing.T) {
	a := attendant(t, attend.Options{Grace: hasty, Most: 1})
	require.NoError(t, a.told(t).Close())
	zktest.Eventually(t, coordtest.Soon, func() bool { return a.Stats().Deaths == 1 }, "the death is noticed")
	require.ErrorIs(t, coordtest.Err(attend.Check(coordtest.Limited(t), a.socket)), attend.ErrRefused)
}

// A client that connects anew has not died, whenever the attendant notices that
// the former connection has ended.
func TestASessionThatIsToldAgainWithinTheGraceIsNotClosed(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	a := attendant(t, attend.Options{Grace: 50 * time.Millisecond})
	p, _ := a.hold(t, w, "l")
	former := a.told(t)
	a.told(t)
	require.NoError(t, former.Close())
	zktest.Eventually(t, coordtest.Soon, func() bool { return a.Stats().Connections == 2 },
		"the former one's grace is over")
	s := a.Stats()
	require.Equal(t, [4]int{1, 0, 0, 2}, [4]int{s.Deaths, s.Closed, s.Failed, s.Sessions})
	p.Kill()
	free(t, w, "l")
}

// stranger is a process of another user.
func stranger(args []string) {
	dir := args[0]
	zktest.ExitOn(os.Chdir(dir)) // which it would not find its way into
	zktest.ExitOn(syscall.Setgroups(nil))
	zktest.ExitOn(syscall.Setgid(65534))
	zktest.ExitOn(syscall.Setuid(65534))
	_, err := net.Dial("unix", "closed")
	fmt.Println(err)
	conn, err := net.Dial("unix", "s")
	zktest.ExitOn(err)
	zktest.ExitOn(protocol.Write(conn, protocol.Message{Attend: &someSession}))
	var a protocol.Answer
	zktest.ExitOn(protocol.Read(conn, &a, nil))
	fmt.Println(a.Error)
}

func TestAnotherUserIsRefused(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("left out: only root can be another user")
	}
	a := attendant(t, attend.Options{Grace: hasty})
	dir := strings.TrimSuffix(a.socket, "/s")
	require.NoError(t, os.Chmod(dir, 0o755))
	l, err := attend.Listen(dir+"/closed", 0o660)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	a.told(t)

	p := zktest.Child(t, "stranger", dir)
	require.Contains(t, p.Line(coordtest.Soon), "permission denied")
	require.Equal(t, "the session is another user's", p.Line(coordtest.Soon))
	require.Zero(t, p.ExitCode(coordtest.Soon))
	s := a.Stats()
	require.Equal(t, [3]int{0, 1, 1}, [3]int{s.Deaths, s.Sessions, s.Refused})
}

// A process that leaves another one behind, which may act, takes its word back.
func TestWhatTheAttendantIsToldCanBeTakenBack(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	a := attendant(t, attend.Options{Grace: hasty})
	shared := make(chan *os.File, 1)
	_, events := a.open(t, w, coord.WithAttendant(a.socket, func(f *os.File) { offer(shared, f) }))
	require.NoError(t, next(t, events).Err)
	f := <-shared
	require.NoError(t, attend.Leave(f))
	zktest.Eventually(t, coordtest.Soon, func() bool { s := a.Stats(); return s.Sessions == 0 && s.Connections == 1 },
		"it is forgotten")
	require.NoError(t, f.Close())
}

func TestASocketIsTakenOverFromAnAttendantThatIsGone(t *testing.T) {
	socket := folder(t) + "/s"
	first := start(t, socket, attend.Options{})
	info, err := os.Stat(socket)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o666), info.Mode().Perm())
	require.ErrorContains(t, coordtest.Err(attend.Listen(socket, 0o600)), "an attendant is there already")
	sessions, err := attend.Check(coordtest.Limited(t), socket)
	require.NoError(t, err)
	require.Zero(t, sessions)
	first.end()
	require.ErrorIs(t, coordtest.Err(attend.Check(coordtest.Limited(t), socket)), syscall.ECONNREFUSED)
	start(t, socket, attend.Options{})

	file := folder(t) + "/f"
	require.NoError(t, os.WriteFile(file, []byte("precious"), 0o600))
	require.ErrorContains(t, coordtest.Err(attend.Listen(file, 0o600)), "no socket")
	require.ErrorContains(t, coordtest.Err(attend.Listen(file+"-none/socket", 0o600)),
		file+"-none/socket: bind: no such file or directory")
}

func TestACheckOfAnAttendantThatHangsEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	socket, _ := silent(t)
	require.ErrorIs(t, coordtest.Err(attend.Check(ctx, socket)), context.DeadlineExceeded)
}

// Clients that die together, as when a container is killed. With -clients 1000
// -v the test tells how long that takes.
func TestF63AllSessionsOfClientsThatDieTogetherAreClosed(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		a := attendant(t, attend.Options{})
		p := zktest.Child(t, "crowd", w.ConnectString(), w.Path("crowd"), a.socket, fmt.Sprint(*clients))
		w.SetTimeout(T)
		require.Equal(t, "attended", p.Line(5*coordtest.Soon))
		require.Equal(t, *clients, a.Stats().Sessions)
		p.Kill()
		zktest.Eventually(t, T/2, func() bool { return a.Stats().Closed == *clients }, "all sessions are closed")
		s := a.Stats()
		t.Logf("%d clients: closed after %v on average, %v at most", *clients, s.Took/time.Duration(s.Closed), s.Slowest)
		require.Zero(t, s.Failed)
	})
}

// The attendant asks one server after the other: one that hangs, one that is
// down, and an election cost seconds, and no session timeout.
func TestF63ADeathIsFollowedWhileServersAreDown(t *testing.T) {
	zktest.EachPrivate(t, func(t *testing.T, w *zktest.World) {
		a := attendant(t, attend.Options{Grace: hasty})
		during, _ := a.hold(t, w, "while a server hangs")
		after, _ := a.hold(t, w, "while the leader is down")
		closed := func(n int) {
			t.Helper()
			zktest.Eventually(t, T/2, func() bool { return a.Stats().Closed == n }, "%d sessions are closed", n)
			t.Logf("closed, the slowest after %v", a.Stats().Slowest)
		}
		hangs := w.Ensemble().Followers()[0]
		require.NoError(t, hangs.Stop())
		during.Kill()
		closed(1)
		require.NoError(t, hangs.Continue())
		require.NoError(t, w.Ensemble().AwaitReady())

		leader, err := w.Ensemble().Leader()
		require.NoError(t, err)
		require.NoError(t, leader.Kill())
		after.Kill()
		closed(2)
		require.NoError(t, leader.Restart())
		require.NoError(t, w.Ensemble().AwaitReady())
		free(t, w, "while a server hangs")
		free(t, w, "while the leader is down")
		require.Zero(t, a.Stats().Failed)
	}, zktest.Ensemble)
}

// As in a container, where each has the same.
func TestASocketOfAKilledProcessWithTheSamePidIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: fmt.Sprintf("%s.%d", path, os.Getpid()), Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	m, err := attend.Listen(path, 0o600)
	require.NoError(t, err)
	require.NoError(t, m.Close())
}
