package coord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// Turn waits until rule grants the claim its turn. When it returns an error,
// the claim is still there, unless its node or its session is gone: leave it,
// or wait again. When the claim is left meanwhile, the error is [ErrReleased].
// Each wake-up looks again before anything is granted, and so does a Turn that
// is asked for some time after the join: one request, unless the claim watches
// its node already. A grant needs an open trust window. A claim of a name stands
// in no line: it is granted at once.
func (cl *Claim) Turn(ctx context.Context, rule Rule) (*Hold, error) {
	h, err := cl.turn(ctx, rule, false)
	return h, cl.client.Failure("wait", cl.shape.Line.Dir, err)
}

func (cl *Claim) turn(ctx context.Context, rule Rule, try bool) (*Hold, error) {
	if cl.shape.name != "" {
		return cl.grant(ctx)
	}
	if rule == nil && cl.view == nil {
		if _, err := admit(cl.own(), nil); err != nil {
			return nil, err
		}
		return cl.grant(ctx)
	}
	cl.node.Wait()
	defer cl.node.EndWait()
	ahead, err := cl.look(ctx)
	for listed := true; err == nil; {
		if rule == nil {
			return cl.grant(ctx)
		}
		wait, granted := rule(ahead)
		switch {
		case granted:
			return cl.grant(ctx)
		case try:
			return nil, ErrBusy
		case listed:
			ahead, listed, err = cl.await(ctx, cl.remember(ahead, wait))
		default:
			listed = true
		}
		if err == nil && listed {
			ahead, err = cl.look(ctx)
		}
	}
	return nil, err
}

// look lists the line and returns those ahead.
func (cl *Claim) look(ctx context.Context) ([]Contender, error) {
	own := cl.own()
	if _, err := admit(own, nil); err != nil {
		return nil, err
	}
	ahead, foreign, there := cl.ahead(own, cl.view)
	cl.view = nil
	if !there {
		names, err := cl.list(ctx)
		if err != nil {
			return nil, err
		}
		if ahead, foreign, there = cl.ahead(own, names); !there {
			// The listing is not older than the create: the node is gone.
			return nil, cl.missed()
		}
		cl.node.Seen()
	}
	late, err := admit(own, foreign)
	if late != nil {
		cl.client.opts.log.Warn("a contender of another dialect or recipe came after this claim; the two do not exclude each other",
			"claim", cl.Node(), "foreign", late.Name)
		cl.client.emit(Event{Kind: ClaimForeign, Session: cl.sess.ID(), Path: cl.shape.Line.Dir + "/" + late.Name})
	}
	return ahead, err
}

// ahead returns those who stand ahead of the own place, those who cannot be
// honoured, and whether the own node is in the listing. A rule that looks
// beyond the end of what it is given finds nothing there.
func (cl *Claim) ahead(own Contender, names *session.Listing) (ahead, foreign []Contender, there bool) {
	if names == nil {
		return nil, nil, false
	}
	all := cl.shape.Line.view(names, cl.client.opts.dialect)
	at, there := slices.BinarySearchFunc(all.line, own, byAge)
	return all.line[:at:at], all.foreign, there
}

// list lists the directory, over lost connections, while the session lasts.
func (cl *Claim) list(ctx context.Context) (*session.Listing, error) {
	names, err := znode.Read(ctx, cl.sess, func() (*session.Listing, error) {
		return cl.sess.List(ctx, cl.node.Spec.Dir)
	})
	if errors.Is(err, ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// awaited is what a claim keeps while it waits: one of thousands in one client
// must not keep the whole line.
type awaited struct {
	nodes []string    // of those to wait for, and the own one at the end
	ahead []Contender // of the own place, if that is near the front, or nil
}

// near is the number of places at the front of a line where the rule is asked
// again, when one of the awaited goes, before anything is listed. Farther back
// it would hardly grant a turn.
const near = 16

func (cl *Claim) remember(ahead []Contender, wait []int) awaited {
	var a awaited
	for _, at := range wait {
		a.nodes = append(a.nodes, znode.Join(cl.node.Spec.Dir, ahead[at].Name))
	}
	a.nodes = append(a.nodes, cl.node.Path())
	if len(ahead) < near {
		a.ahead = slices.Clone(ahead)
	}
	return a
}

// await waits for a reason to ask the rule again. It returns those ahead without
// the ones that are known to be gone, or says that only a listing can tell.
// Sound, because nobody can appear ahead of the own place but a downgraded
// writer, whose going is followed by a listing, and because a lost connection,
// after which events may have been missed, reports every watch as stale.
func (cl *Claim) await(ctx context.Context, a awaited) (ahead []Contender, list bool, err error) {
	for {
		watches, err := cl.watchAll(ctx, a.nodes)
		if err != nil {
			return nil, false, err
		}
		for armed := true; armed; {
			var gone []string
			var stale bool
			gone, stale, armed = departed(a.nodes, watches)
			switch {
			case slices.Contains(gone, cl.node.Path()):
				return nil, false, cl.missed()
			case stale:
				return nil, true, nil
			case len(gone) > 0:
				ahead, list = cl.without(a.ahead, gone)
				return ahead, list, nil
			case armed:
				err = cl.sleep(ctx, watches)
			}
			if err != nil {
				return nil, false, err
			}
		}
	}
}

// watchAll watches the nodes to wait for and the own one, all in one round trip.
// Nodes that are watched already cost nothing.
func (cl *Claim) watchAll(ctx context.Context, nodes []string) ([]session.Watched, error) {
	all := cl.sess.WatchAll(ctx, nodes...)
	own := &all[len(all)-1]
	own.Err = cl.node.Heed(own.Watch, own.Err)
	if err := cl.why(); err != nil {
		return nil, err
	}
	for _, w := range all {
		if w.Err != nil && !errors.Is(w.Err, ErrNoNode) && !transient(w.Err) {
			return nil, w.Err
		}
		if errors.Is(w.Err, ErrThrottled) {
			cl.client.pause(ctx)
		}
	}
	return all, nil
}

// departed tells which of the nodes are gone, whether nothing is known of one
// any more, and whether every watch is still to fire.
func departed(nodes []string, all []session.Watched) (gone []string, stale, armed bool) {
	armed = true
	for i, w := range all {
		if w.Err != nil {
			if errors.Is(w.Err, ErrNoNode) {
				gone = append(gone, nodes[i])
			} else {
				stale = true
			}
			continue
		}
		select {
		case <-w.Done():
			armed = false
			switch w.Fired() {
			case session.Deleted:
				gone = append(gone, nodes[i])
			case session.Stale:
				stale = true
			}
		default:
		}
	}
	return gone, stale, armed
}

// without takes those who are gone out of those ahead, or asks for a listing when
// one of them may have returned, or it is not known who is ahead.
func (cl *Claim) without(ahead []Contender, gone []string) (left []Contender, list bool) {
	for _, c := range ahead {
		switch {
		case !slices.Contains(gone, znode.Join(cl.node.Spec.Dir, c.Name)):
			left = append(left, c)
		case cl.shape.Line.mayReturn(c):
			return nil, true
		}
	}
	return left, ahead == nil
}

// sleep returns when something happened that the claim must look at. It is woken
// by its own watch, the last, like by its session.
func (cl *Claim) sleep(ctx context.Context, all []session.Watched) error {
	others := all[:len(all)-1]
	if len(others) > 2 {
		return cl.sleepLong(ctx, others)
	}
	var done [2]<-chan struct{}
	for i, w := range others {
		done[i] = w.Done()
	}
	select {
	case <-ctx.Done():
		return Ended(ctx)
	case <-cl.wake:
	case <-done[0]:
	case <-done[1]:
	}
	return cl.why()
}

// sleepLong is sleep for any number of others.
func (cl *Claim) sleepLong(ctx context.Context, others []session.Watched) error {
	cases := []reflect.SelectCase{
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())},
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(cl.wake)},
	}
	for _, w := range others {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(w.Done())})
	}
	if chosen, _, _ := reflect.Select(cases); chosen == 0 {
		return Ended(ctx)
	}
	return cl.why()
}

// grant makes the hold, once the trust window is open and the node known to be
// there.
func (cl *Claim) grant(ctx context.Context) (*Hold, error) {
	for known := false; !known; known = cl.node.Known() {
		switch err := cl.node.Look(ctx); {
		case errors.Is(err, ErrNoNode):
			return nil, cl.missed()
		case err != nil:
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
	cl.node.EndWait()
	cl.emit(ClaimGranted, cl.joined, nil)
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
	return fmt.Errorf("claim %s: %w", cl.name(), cl.gone)
}
