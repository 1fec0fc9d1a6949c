package attend

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// The pauses before another connection to the attendant.
	firstPause = 100 * time.Millisecond
	mostPause  = 10 * time.Second
	// How long the client waits for a connection, and for an answer, before it
	// reports that there is no attendant.
	answerWithin = 5 * time.Second
	// How long the goodbye of a process that goes on may take.
	leaveWithin = 100 * time.Millisecond
)

// ErrNoAnswer: the attendant has accepted the connection, and is silent.
var ErrNoAnswer = fmt.Errorf("the attendant has not answered within %v", answerWithin)

// errClosed: the attendant has ended the connection, without a reason.
var errClosed = errors.New("the attendant has closed the connection")

// Client tells an attendant of a session, and of the next one when that is
// over, and again whenever it has to connect anew.
type Client struct {
	path  string
	share []func(*os.File)
	heard func(session int64, err error)

	mu      sync.Mutex
	current *Session // nil: none yet
	news    chan struct{}

	told    bool  // heard was called
	trouble error // what it was called with
}

// NewClient returns a client of the attendant at path. Its owner runs
// [Client.Run]. Each of share gets a copy of each connection, before the
// attendant is told of a session on it. heard is called when that changes: with
// nil if the session is attended, otherwise with the reason why not.
func NewClient(path string, share []func(*os.File), heard func(session int64, err error)) *Client {
	return &Client{path: path, share: share, heard: heard, news: make(chan struct{}, 1)}
}

// Attend has the attendant close s when this process dies. It does not block.
func (c *Client) Attend(s Session) {
	c.mu.Lock()
	c.current = &s
	c.mu.Unlock()
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// Refuse reports why no attendant can be told of a session.
func (c *Client) Refuse(session int64, err error) { c.heard(session, err) }

func (c *Client) session() *Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

// Run keeps the attendant informed until ctx ends. Then it says goodbye.
func (c *Client) Run(ctx context.Context) {
	select {
	case <-c.news:
	case <-ctx.Done():
		return
	}
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		attended, err := c.converse(ctx)
		if ctx.Err() != nil {
			return
		}
		c.tell(err)
		if attended {
			pause = firstPause
		}
		select {
		case <-time.After(pause/2 + rand.N(pause/2)):
		case <-ctx.Done():
			return
		}
	}
}

// tell reports changes only: once that there is no attendant, however often the
// reason changes, and once that there is one.
func (c *Client) tell(err error) {
	if changed := !c.told || (err == nil) != (c.trouble == nil); changed {
		c.heard(c.session().ID, err)
	}
	c.told, c.trouble = true, err
}

// converse talks to the attendant until it ends the connection, or ctx ends.
// The connection of a live session is not closed before: the attendant would
// take that for the end of this process.
func (c *Client) converse(ctx context.Context) (attended bool, err error) {
	dialing, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	var dialer net.Dialer
	raw, err := dialer.DialContext(dialing, "unix", c.path)
	if err != nil {
		return false, err
	}
	conn := raw.(*net.UnixConn)
	var reading sync.WaitGroup
	defer reading.Wait()
	defer hangUp(conn)
	// Nobody waits for an attendant that does not read.
	defer context.AfterFunc(ctx, func() { _ = conn.SetWriteDeadline(time.Now().Add(leaveWithin)) })()
	for _, share := range c.share {
		file, err := conn.File()
		if err != nil {
			return false, err
		}
		share(file)
	}
	answers := make(chan error)
	over := make(chan struct{})
	defer close(over)
	reading.Go(func() { read(conn, answers, over) })
	send := func() error {
		err := Write(conn, Message{Attend: c.session()})
		if errors.As(err, new(*net.OpError)) {
			select { // why the attendant has ended the connection
			case err = <-answers:
			case <-ctx.Done():
			}
		}
		return err
	}
	if err := send(); err != nil {
		return false, part(conn, err)
	}
	silent := time.After(answerWithin)
	for {
		select {
		case err := <-answers:
			if err != nil {
				return attended, part(conn, err)
			}
			attended, silent = true, nil
			c.tell(nil)
		case <-silent:
			c.tell(ErrNoAnswer)
		case <-c.news:
			if err := send(); err != nil {
				return attended, part(conn, err)
			}
			silent = time.After(answerWithin)
		case <-ctx.Done():
			_ = conn.SetWriteDeadline(time.Now().Add(leaveWithin))
			_ = Write(conn, Message{Leave: true})
			return attended, nil
		}
	}
}

// part takes back, before the connection is closed, what the attendant was
// told: the attendant may still be there, if only its answer was not
// understood.
func part(conn net.Conn, err error) error {
	_ = Write(conn, Message{Leave: true})
	return err
}

// read passes on the attendant's answers, until there are none any more.
func read(conn net.Conn, answers chan<- error, over <-chan struct{}) {
	for {
		var a Answer
		err := Read(conn, &a, nil)
		switch {
		case err == nil && a.Error != "":
			err = errors.New(a.Error)
		case errors.Is(err, ErrProtocol), err == nil:
		default:
			err = errClosed
		}
		select {
		case answers <- err:
		case <-over:
			return
		}
		if err != nil {
			return
		}
	}
}

// hangUp ends a connection for all that have it: once a copy was shared, the
// connection is in blocking mode, and a reader would not notice that it is
// closed.
func hangUp(conn *net.UnixConn) {
	_, _ = conn.CloseRead(), conn.CloseWrite()
	_ = conn.Close()
}
