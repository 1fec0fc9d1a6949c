package coord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/session"
)

// Acquire joins the line, waits for the turn by rule, and returns the hold.
// When the own node is deleted or the session ends while waiting, it joins
// again, at the end of the line. When it returns an error, nothing is left
// behind: what could not be deleted yet is deleted in the background. When ctx
// ends, it returns at once. ctx bounds the waiting only, not the hold. With a
// ctx that carries a hold of the same line, see [Spec.Reentrant] and
// [ErrUpgrade].
func (c *Client) Acquire(ctx context.Context, spec Spec, rule Rule) (*Hold, error) {
	h, decided, err := c.inside(ctx, spec)
	if !decided {
		h, err = c.acquire(ctx, spec, rule, false)
	}
	return h, c.Failure("acquire", spec.Line.Dir, err)
}

// TryAcquire is Acquire without waiting for others: [ErrBusy] when it is not
// the claim's turn at once. It looks before it writes, so that a busy line costs
// one request and no write. While no server can be reached, it waits for one
// until ctx ends.
func (c *Client) TryAcquire(ctx context.Context, spec Spec, rule Rule) (*Hold, error) {
	h, decided, err := c.inside(ctx, spec)
	if !decided {
		h, err = c.tryAcquire(ctx, spec, rule)
	}
	return h, c.Failure("try", spec.Line.Dir, err)
}

func (c *Client) tryAcquire(ctx context.Context, spec Spec, rule Rule) (*Hold, error) {
	if err := c.checkSpec(&spec); err != nil {
		return nil, err
	}
	names, err := c.Children(ctx, spec.Line.Dir)
	if err != nil && !errors.Is(err, ErrNoNode) {
		return nil, err
	}
	line, foreign := spec.Line.parse(names, c.opts.dialect)
	newcomer := Contender{Kind: spec.Kind, Sequence: sequenceLimit - 1, Dialect: c.opts.dialect}
	if _, err := admit(newcomer, foreign); err != nil {
		return nil, err
	}
	if _, granted := rule(append(line, newcomer), len(line)); !granted {
		return nil, ErrBusy
	}
	return c.acquire(ctx, spec, rule, true)
}

func (c *Client) acquire(ctx context.Context, spec Spec, rule Rule, try bool) (*Hold, error) {
	for {
		cl, err := c.join(ctx, spec)
		if err == nil {
			var h *Hold
			if h, err = cl.turn(ctx, rule, try); err == nil {
				return h, nil
			}
			cl.giveUp(ctx, err)
		}
		again := errors.Is(err, ErrNodeDeleted) || errors.Is(err, ErrLost) || transient(err)
		if !again {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w (%w)", Ended(ctx), err)
		}
		if err := c.bury(ctx, cl); err != nil {
			return nil, err
		}
	}
}

// bury sees to it that the node of a claim whose session is over is gone before
// the next one is made. A session that this client gave up can go on at the
// servers for as long as it takes them to expire it, and whoever counts
// contenders would count two.
//
// No create of it should come later than the write: this client was cut off for
// longer than the session lasts, so that the servers have heard of the session
// only by a newer connection, since which they refuse what the older one sends.
// One that comes all the same (see [doubt]) goes with the session.
func (c *Client) bury(ctx context.Context, cl *Claim) error {
	if cl == nil || cl.sess.Err() == nil || cl.spec.Name != "" {
		return nil
	}
	dir, nodes := cl.spec.Line.Dir, []string{cl.Node()}
	if cl.node == "" { // it is not known whether there is one
		if err := c.Flush(ctx); err != nil {
			return err
		}
		names, err := c.Children(ctx, dir)
		if err != nil && !errors.Is(err, ErrNoNode) {
			return err
		}
		prefix := c.opts.dialect.prefix(cl.guid, cl.spec.Kind)
		names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) })
		nodes = names
		for i, name := range names {
			nodes[i] = join(dir, name)
		}
	}
	for _, node := range nodes {
		err := Break(ctx, c, node)
		if errors.Is(err, ErrNoAuth) {
			err = AwaitDeleted(ctx, c, node)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// giveUp leaves the line. Unless the caller is in a hurry, it waits until the
// node is gone.
func (cl *Claim) giveUp(ctx context.Context, why error) {
	cl.client.emit(Event{Kind: ClaimLeft, Session: cl.sess.ID(), Path: cl.Node(), Took: time.Since(cl.joined), Err: why})
	r := cl.leave()
	select {
	case <-r.done:
	case <-ctx.Done():
	}
}

// Turn waits until rule grants the claim its turn. When it returns an error,
// the claim is still there, unless its node or its session is gone: leave it,
// or wait again. When the claim is left meanwhile, the error is [ErrReleased].
// Each wake-up looks again before anything is granted, and a grant needs an
// open trust window.
func (cl *Claim) Turn(ctx context.Context, rule Rule) (*Hold, error) {
	h, err := cl.turn(ctx, rule, false)
	return h, cl.client.Failure("wait", cl.spec.Line.Dir, err)
}

func (cl *Claim) turn(ctx context.Context, rule Rule, try bool) (*Hold, error) {
	if cl.spec.Unlisted {
		if _, err := admit(cl.own(), nil); err != nil {
			return nil, err
		}
	}
	if !cl.spec.waits() {
		return cl.grant(ctx)
	}
	line, listed, err := cl.look(ctx)
	for err == nil {
		wait, granted := rule(line, indexOf(line, cl.name))
		switch {
		case granted:
			return cl.grant(ctx)
		case try:
			return nil, ErrBusy
		case listed:
			line, err = cl.await(ctx, line, wait)
			listed = false
		default:
			line = nil
		}
		if err == nil && line == nil {
			line, listed, err = cl.look(ctx)
		}
	}
	return nil, err
}

// look lists the line and finds the own place in it.
func (cl *Claim) look(ctx context.Context) (line []Contender, listed bool, err error) {
	names := cl.view
	cl.view = nil
	if !slices.Contains(names, cl.name) {
		if names, err = cl.list(ctx); err != nil {
			return nil, false, err
		}
		if !slices.Contains(names, cl.name) {
			// The listing is not older than the create: the node is gone.
			return nil, false, cl.missed()
		}
	}
	line, foreign := cl.spec.Line.parse(names, cl.client.opts.dialect)
	late, err := admit(cl.own(), foreign)
	if late != nil {
		cl.client.opts.log.Warn("a contender of another dialect or recipe came after this claim; the two do not exclude each other",
			"claim", cl.Node(), "foreign", late.Name)
		cl.client.emit(Event{Kind: ClaimForeign, Session: cl.sess.ID(), Path: cl.spec.Line.Dir + "/" + late.Name})
	}
	return line, true, err
}

// list lists the directory, over lost connections, while the session lasts.
func (cl *Claim) list(ctx context.Context) ([]string, error) {
	for {
		names, err := cl.sess.Children(ctx, cl.dir)
		switch {
		case errors.Is(err, ErrSessionExpired), errors.Is(err, ErrClosed):
			return nil, err
		case errors.Is(err, ErrDisconnected):
		case errors.Is(err, ErrThrottled):
			cl.client.pause(ctx)
		case errors.Is(err, ErrNoNode):
			return nil, nil
		default:
			return names, err
		}
		if ctx.Err() != nil {
			return nil, Ended(ctx)
		}
	}
}

// await waits for a reason to ask the rule again. It returns the line without
// those that are known to be gone, or nil when only a listing can tell. Sound,
// because nobody can appear before the own place but a downgraded writer, whose
// going is followed by a listing, and because a lost connection, after which
// events may have been missed, reports every watch as stale.
func (cl *Claim) await(ctx context.Context, line []Contender, wait []int) ([]Contender, error) {
	for {
		watches, err := cl.watchAll(ctx, line, wait)
		if err != nil {
			return nil, err
		}
		for armed := true; armed; {
			var gone []string
			var stale bool
			gone, stale, armed = departed(watches)
			switch {
			case slices.Contains(gone, cl.name):
				return nil, cl.missed()
			case stale:
				return nil, nil
			case len(gone) > 0:
				return cl.without(line, gone), nil
			case armed:
				err = cl.sleep(ctx, watches)
			}
			if err != nil {
				return nil, err
			}
		}
	}
}

// awaited is a contender that is waited for, and the watch on its node or why
// there is none.
type awaited struct {
	name  string
	watch *session.Watch
	err   error
}

// watchAll watches the own node and those to wait for, all in one round trip.
// Nodes that are watched already cost nothing.
func (cl *Claim) watchAll(ctx context.Context, line []Contender, wait []int) ([]awaited, error) {
	all := make([]awaited, len(wait)+1)
	var arming sync.WaitGroup
	for i, at := range wait {
		all[i].name = line[at].Name
		arming.Go(func() {
			all[i].watch, all[i].err = cl.sess.WatchData(ctx, join(cl.dir, all[i].name))
		})
	}
	own := &all[len(wait)]
	own.name = cl.name
	own.watch, own.err = cl.watchOwn(ctx)
	arming.Wait()
	if err := cl.why(); err != nil {
		return nil, err
	}
	for _, a := range all {
		if a.err != nil && !errors.Is(a.err, ErrNoNode) && !transient(a.err) {
			return nil, a.err
		}
		if errors.Is(a.err, ErrThrottled) {
			cl.client.pause(ctx)
		}
	}
	return all, nil
}

// departed tells which of the awaited are gone, whether nothing is known of one
// any more, and whether every watch is still to fire.
func departed(all []awaited) (gone []string, stale, armed bool) {
	armed = true
	for _, a := range all {
		if a.err != nil {
			if errors.Is(a.err, ErrNoNode) {
				gone = append(gone, a.name)
			} else {
				stale = true
			}
			continue
		}
		select {
		case <-a.watch.Done():
			armed = false
			switch a.watch.Fired() {
			case session.Deleted:
				gone = append(gone, a.name)
			case session.Stale:
				stale = true
			}
		default:
		}
	}
	return gone, stale, armed
}

// without takes those who are gone out of the line, or returns nil when one of
// them may have returned.
func (cl *Claim) without(line []Contender, gone []string) []Contender {
	var left []Contender
	for _, c := range line {
		switch {
		case !slices.Contains(gone, c.Name):
			left = append(left, c)
		case cl.spec.Line.mayReturn(c):
			return nil
		}
	}
	return left
}

// sleep returns when something happened that the claim must look at.
func (cl *Claim) sleep(ctx context.Context, all []awaited) error {
	cases := []reflect.SelectCase{
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())},
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(cl.wake)},
	}
	for _, a := range all {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(a.watch.Done())})
	}
	if chosen, _, _ := reflect.Select(cases); chosen == 0 {
		return Ended(ctx)
	}
	return cl.why()
}

// grant makes the hold, once the trust window is open.
func (cl *Claim) grant(ctx context.Context) (*Hold, error) {
	if err := cl.sess.Vouch(ctx); err != nil {
		return nil, err
	}
	cl.mu.Lock()
	if cl.gone != nil || cl.removal != nil {
		cl.mu.Unlock()
		return nil, cmp.Or(cl.why(), ErrReleased)
	}
	h := cl.newHold()
	cl.mu.Unlock()
	cl.client.emit(Event{Kind: ClaimGranted, Session: cl.sess.ID(), Path: cl.Node(), Token: h.Token(), Took: time.Since(cl.joined)})
	cl.watchOwnSoon()
	if err := h.Err(); err != nil {
		return nil, err
	}
	return h, nil
}

// missed notes that the node is not there any more and tells why: the claim may
// have been left meanwhile.
func (cl *Claim) missed() error {
	cl.vanish(ErrNodeDeleted)
	return cmp.Or(cl.why(), ErrReleased)
}

// why tells why the claim's node is gone, or nil.
func (cl *Claim) why() error {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.gone == nil {
		return nil
	}
	return fmt.Errorf("claim %s: %w", cl.name, cl.gone)
}
