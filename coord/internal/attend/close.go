package attend

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/servers"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// How long a server may take to close a session before the next one is asked:
// patience at first, and twice as long each time, up to a sixth of the
// session's timeout.
const (
	patience      = time.Second
	patienceShare = 6
)

// Closer says how a session is closed.
type Closer struct {
	servers.Config
	Run    func(attempt func()) error     // runs an attempt to connect
	Try    func(at func() error) error    // has a server close the session
	Failed func(server string, err error) // is called for each server that has not
}

// CloserOf returns how to close a session, from what its client has told.
func CloserOf(s Session) (Closer, error) {
	c := Closer{
		Config: servers.Config{Servers: s.Servers, Dial: (&net.Dialer{}).DialContext, Lookup: net.DefaultResolver.LookupHost},
		Run: func(attempt func()) error {
			go attempt()
			return nil
		},
		Try: func(at func() error) error { return at() }, Failed: func(string, error) {},
	}
	var err error
	if s.TLS != nil {
		config, failed := s.TLS.config()
		c.TLS, err = servers.Fixed(config), failed
	}
	return c, err
}

// Close closes a session: it asks one server after the other, until one has
// closed it, or knows that it has expired, or ctx ends. If no server answers
// within the session's timeout, the servers have expired it anyway.
func (c Closer) Close(ctx context.Context, s Session) error {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	search := servers.New(ctx, c.Config, c.Run)
	for limit := patience; ; limit = min(2*limit, s.Timeout) {
		server, _ := search.Next()
		err := c.Try(func() error { return s.closeAt(ctx, search, server, min(limit, s.Timeout/patienceShare)) })
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w (%w)", ctx.Err(), err)
		}
		c.Failed(server, err)
	}
}

func (s Session) closeAt(ctx context.Context, search *servers.Search, server string, limit time.Duration) error {
	conn, err := search.Connect("tcp", server, s.Timeout, false, true)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(limit))
	farewell := wire.Farewell{Session: wire.Welcome{ID: s.ID, Timeout: s.Timeout, Passwd: s.Password}}
	for _, c := range s.Auth {
		farewell.Present(c.Scheme, c.Value)
	}
	return farewell.Say(conn)
}
