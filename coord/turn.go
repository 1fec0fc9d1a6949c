package coord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/session"
)

// Turn waits until rule grants the claim its turn. When it returns an error,
// the claim is still there, unless its node or its session is gone: leave it,
// or wait again. When the claim is left meanwhile, the error is [ErrReleased].
// Each wake-up looks again before anything is granted, and so does a Turn that
// is asked for some time after the join: one request, unless the claim watches
// its node already. A grant needs an open trust window.
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
		cl.seen = time.Now()
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

// grant makes the hold, once the trust window is open and the node known to be
// there.
func (cl *Claim) grant(ctx context.Context) (*Hold, error) {
	for known := false; !known; known = cl.knowsOwn() {
		if err := cl.lookAtOwn(ctx); err != nil {
			return nil, err
		}
		if err := cl.sess.Vouch(ctx); err != nil {
			return nil, err
		}
	}
	cl.mu.Lock()
	if cl.gone != nil || cl.removal != nil {
		cl.mu.Unlock()
		return nil, cmp.Or(cl.why(), ErrReleased)
	}
	h := cl.newHold()
	cl.mu.Unlock()
	cl.client.emit(Event{Kind: ClaimGranted, Session: cl.sess.ID(), Path: cl.Node(), Token: h.Token(), Took: time.Since(cl.joined)})
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
