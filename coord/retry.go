package coord

import (
	"context"
	"errors"
	"sync/atomic"
)

// Retry calls f again for as long as the same call can end otherwise the next
// time: when the connection or the session failed before the reply came, or
// the server throttled it. It is for requests that do no harm when they are
// carried out twice; f finds out what is different the second time. It returns
// f's last error when ctx ends. A hold that is lost ([ErrLost]) does not come
// back, for whatever reason it was lost.
func (c *Client) Retry(ctx context.Context, f func(context.Context) error) error {
	for {
		err := f(ctx)
		if err == nil || ctx.Err() != nil || !transient(err) || errors.Is(err, ErrLost) {
			return err
		}
		if errors.Is(err, ErrThrottled) {
			c.pause(ctx)
		}
	}
}

// Fresh makes reads that are up to date and do not go back in time. A server
// may lag behind the ensemble, and after a change of session the next one may
// lag behind the last: see [Client.Fresh].
type Fresh struct {
	client  *Client
	session atomic.Int64 // in which reads show what was committed before the first
}

// Fresh returns a reader for one caller. What it reads shows all that was
// committed before its first Read, and never less than it has shown. It costs
// a [Client.Flush] in each session.
func (c *Client) Fresh() *Fresh { return &Fresh{client: c} }

// Read calls read, which makes one or more reads with the client, and calls it
// again when the session has changed meanwhile. It returns read's error.
func (f *Fresh) Read(ctx context.Context, read func(context.Context) error) error {
	for {
		id := f.client.SessionID()
		if id == 0 || id != f.session.Load() {
			if err := f.client.Flush(ctx); err != nil {
				return err
			}
			f.session.Store(id)
		}
		err := read(ctx)
		if err != nil && !errors.Is(err, ErrNoNode) {
			return err
		}
		if flushed := f.session.Load(); flushed != 0 && f.client.SessionID() == flushed {
			return err
		}
	}
}
