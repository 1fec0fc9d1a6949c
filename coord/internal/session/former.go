package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/servers"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// errGivenUp: this client has ended the session, which servers may still have.
var errGivenUp = errors.New("given up by this client")

// closeFormer closes a session that this client has given up, as soon as the
// next one is up: others need not wait until the servers expire it. Nothing
// trusts the session any more: its holds have ended before.
func (k *Keeper) closeFormer(s *Session) {
	s.mu.Lock()
	id, passwd, timeout := s.id, s.passwd, s.timeout
	s.mu.Unlock()
	if !errors.Is(s.Err(), errGivenUp) || len(passwd) == 0 {
		return
	}
	if _, err := k.Session(k.stop); err != nil {
		return
	}
	// If no server answers by then, the session has expired anyway.
	ctx, cancel := context.WithTimeout(k.stop, timeout)
	defer cancel()
	search := servers.New(ctx, k.cfg.Config, func(attempt func()) error {
		k.running.Go(attempt)
		return nil
	})
	for ctx.Err() == nil {
		server, _ := search.Next()
		conn, err := search.Find("tcp", server, timeout, false)
		if err == nil {
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			_ = conn.SetDeadline(time.Now().Add(timeout / handshakeShare))
			err = wire.CloseSession(conn, wire.Welcome{ID: id, Timeout: timeout, Passwd: passwd})
			stop()
			_ = conn.Close()
		}
		if err == nil {
			return
		}
		k.cfg.Log.Debug("cannot close the former session yet", "server", server, "err", err)
	}
}

// Txn carries out all the operations or none. When the ensemble refused it, the
// results say which operation failed.
func (s *Session) Txn(ctx context.Context, ops []wire.Op) ([]wire.Result, error) {
	results, err := roundTrip(ctx, s, wire.Request{Op: wire.OpMulti}, wire.Transaction(ops), func(d *wire.Decoder) []wire.Result { return d.Results(ops) })
	if at := Refused(results); at >= 0 {
		err = results[at].Err
	}
	return results, err
}

// Node is a node as it was read.
type Node struct {
	Exists bool
	Data   []byte
	Stat   wire.Stat
}

// Get reads a node.
func (s *Session) Get(ctx context.Context, path string) (Node, error) {
	return roundTrip(ctx, s, wire.Request{Op: wire.OpGetData}, wire.Reading(path, false), nodeOf)
}

func nodeOf(d *wire.Decoder) Node { return Node{true, d.Buffer(), d.Stat()} }

// Exists looks whether a node exists; it needs no permission to read it.
func (s *Session) Exists(ctx context.Context, path string) (Node, error) {
	node, err := roundTrip(ctx, s, wire.Request{Op: wire.OpExists}, wire.Reading(path, false), func(d *wire.Decoder) Node {
		return Node{true, nil, d.Stat()}
	})
	if err == wire.ErrNoNode {
		err = nil
	}
	return node, err
}

// Refused returns the index of the operation that the ensemble refused, or -1.
func Refused(replies []wire.Result) int {
	return slices.IndexFunc(replies, func(r wire.Result) bool { return r.Err != nil })
}

// Ended returns why ctx has ended: its error, and its cause as well, unless the
// cause is a context's error itself. If the last attempt failed, its error is
// included; if it already reports the context's end, it is returned alone.
func Ended(ctx context.Context, failure ...error) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	told := errors.Join(failure...)
	if len(failure) == 1 {
		told = failure[0]
	}
	if told != nil {
		if errors.Is(told, err) {
			return told
		}
		return fmt.Errorf("%w (%w)", Ended(ctx), told)
	}
	if errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
