package session

import (
	"bytes"
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/zkcoord/zkcoord/coord/internal/wire"
)

// setting is the request that sets a watch.
type setting struct {
	over chan struct{}
	err  error // why it has failed; set when it is over
}

// Data reads a node and watches it: one request, or none when it is watched
// already. For a missing node it fails with [zk.ErrNoNode] and leaves no watch.
// A node whose data may not be read is watched without its data, by the changes
// of its parent's children.
func (ws *Watches) Data(ctx context.Context, path string) (*Watch, error) {
	return ws.Await(ctx, ws.Begin(Data, path))
}

// Attempt is a watch that is set, or is being set.
type Attempt struct {
	key     armed
	watch   *Watch
	setting *setting
	shared  bool
}

// Begin returns the watch if it is set or being set, or begins to set it.
// Watches that are begun together travel together.
func (ws *Watches) Begin(kind Kind, path string) Attempt {
	key := armed{path, kind}
	ws.mu.Lock()
	if w, shared := ws.set[kind][path]; shared {
		defer ws.mu.Unlock()
		return Attempt{key, w, w.setting, true}
	}
	w := &Watch{path: path, setting: &setting{over: make(chan struct{})}}
	ws.set[kind][path] = w
	a := Attempt{key, w, w.setting, false}
	ws.mu.Unlock()
	if kind == Data {
		ws.arming.add(func() bool { return ws.begin(a, ws.arming.over) })
	} else { // not counted: an unreadable node in the pipeline waits for its parent's children
		ws.begin(a, func() {})
	}
	return a
}

// begin asks for the watch, and reports whether that is under way; then it
// calls over at the end. It takes a goroutine only if the request cannot be
// sent now, or if one more has to follow. The attempt is not bound to the
// context of the first caller, since others may wait for the same watch by now.
func (ws *Watches) begin(a Attempt, over func()) bool {
	background := func(arm func(a Attempt) error) error {
		return ws.s.Go(func() {
			ws.end(a, arm(a))
			over()
		})
	}
	c, r := ws.reading(a)
	c.Told = func(err error) {
		ws.note(a, err)
		err = ws.answered(a, c.Value, ws.s.translate(err))
		if isUnreadable(a, err) {
			if err = background(ws.armByParent); err == nil {
				return
			}
		}
		ws.end(a, err)
		over()
	}
	r.Caller, r.Yields = c, true
	if ws.s.ask(r, wire.Reading(a.key.path, true)) == nil {
		return true
	}
	err := background(ws.arm)
	if err != nil {
		ws.end(a, err)
	}
	return err == nil
}

// end ends an attempt.
func (ws *Watches) end(a Attempt, err error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if err != nil && ws.set[a.key.kind][a.key.path] == a.watch {
		delete(ws.set[a.key.kind], a.key.path)
	}
	a.setting.err, a.watch.setting = err, nil
	close(a.setting.over)
}

// Await waits until the watch is set. A failed attempt that another caller
// began may be older than the call: the node may be there by now. So Await
// makes another attempt, which begins after the failure and thus after the
// call.
func (ws *Watches) Await(ctx context.Context, a Attempt) (*Watch, error) {
	if a.setting == nil {
		return a.watch, nil
	}
	if err := await(ctx, ws.s, a.setting.over); err != nil {
		return nil, err
	}
	if a.setting.err != nil && a.shared {
		again := ws.Begin(a.key.kind, a.key.path)
		again.shared = false
		return ws.Await(ctx, again)
	}
	return a.watch, a.setting.err
}

// arm sets the watch as soon as the request can be sent.
func (ws *Watches) arm(a Attempt) error {
	c, r := ws.reading(a)
	stat, err := answer(context.Background(), ws.s, c, r, wire.Reading(a.key.path, true))
	if err = ws.answered(a, stat, err); isUnreadable(a, err) {
		return ws.armByParent(a)
	}
	return err
}

func isUnreadable(a Attempt, err error) bool {
	return errors.Is(err, zk.ErrNoAuth) && a.key.kind == Data
}

// reading is the request that reads and watches.
func (ws *Watches) reading(a Attempt) (*wire.Call[wire.Stat], wire.Request) {
	w := a.watch
	c := &wire.Call[wire.Stat]{Fields: func(d *wire.Decoder) wire.Stat {
		switch a.key.kind {
		case Data:
			w.Data = ws.share(d.Buffer())
		case Children:
			names := d.Names()
			w.children = &names
		}
		return d.Stat()
	}, Told: func(err error) { ws.note(a, err) }}
	return c, wire.Request{
		Op: [...]wire.OpCode{Data: wire.OpGetData, Children: wire.OpGetChildren2, Absence: wire.OpExists}[a.key.kind],
	}
}

// note notes whether the server has the watch.
func (ws *Watches) note(a Attempt, err error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	a.watch.armed = err == nil || a.key.kind == Absence && err == zk.ErrNoNode
}

// answered keeps what the answer says, and says whether the watch is set.
func (ws *Watches) answered(a Attempt, stat wire.Stat, err error) error {
	a.watch.Stat = stat
	switch {
	case a.key.kind != Absence:
		return err
	case err == nil:
		return zk.ErrNodeExists
	case err == zk.ErrNoNode:
		return nil
	}
	return err
}

// share returns the data that were read before if these are the same. The nodes
// of a client's claims in one line have the same data.
func (ws *Watches) share(data []byte) []byte {
	const short = 1 << 8
	if len(data) == 0 || len(data) > short {
		return data
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if !bytes.Equal(data, ws.last) {
		ws.last = data
	}
	return ws.last
}

// armByParent watches a node whose data may not be read. A server with the fix
// of CVE-2024-23944 sends no event of such a node to its watchers (exists
// included), so its parent's list of children is watched instead: each change
// there fires the watch, and the next look finds out.
func (ws *Watches) armByParent(a Attempt) error {
	siblings, err := ws.Await(context.Background(), ws.Begin(Children, Parent(a.key.path)))
	if err != nil {
		return err
	}
	node, err := ws.s.Exists(context.Background(), a.key.path)
	if err == nil && !node.Exists {
		err = zk.ErrNoNode
	}
	if err != nil {
		return err
	}
	a.watch.Stat = node.Stat
	siblings.OnFire(func(fired Fired) { ws.fire(a.key, fired) })
	return nil
}
