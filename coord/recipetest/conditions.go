package recipetest

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/zkembed"
)

// condition is what may go wrong, and what a call must do then.
type condition[R any] struct {
	name string
	test func(w *world[R], call Call[R])
}

// conditions are the ones in which a call is tested.
func conditions[R any](call Call[R]) []condition[R] {
	all := []condition[R]{
		{"context ended", contextEnded[R]},
		{"closed client", closedClient[R]},
		{"no answer", noAnswer[R]},
	}
	if !call.Waits {
		all = append(
			all,
			condition[R]{"lost request", func(w *world[R], call Call[R]) { madeGood(w, call, zkembed.Drop(), false) }},
			condition[R]{
				"lost reply", func(w *world[R], call Call[R]) { madeGood(w, call, zkembed.LoseReply(), call.Unconfirmed) },
			},
			condition[R]{"throttled", func(w *world[R], call Call[R]) {
				madeGood(w, call, zkembed.ReplyError(zkembed.CodeThrottledOp), false)
			}},
			condition[R]{"session ended", sessionEnded[R]},
			condition[R]{"cost", cost[R]},
		)
	}
	others := call.Block != nil || call.Unblock != nil
	if call.Waits || others {
		all = append(all, condition[R]{"waiting, context ended", waitGivenUp[R]},
			condition[R]{"waiting, closed client", waitClosed[R]})
	}
	if others {
		all = append(
			all,
			condition[R]{"waiting, until its turn comes", goesOn(func(*waiter[R]) {})},
			condition[R]{
				"waiting, lost connection", goesOn(func(at *waiter[R]) { _ = at.server.DropConn(at.client.Info().SessionID) }),
			},
			condition[R]{
				"waiting, session ended", goesOn(func(at *waiter[R]) { _ = at.server.ExpireSession(at.client.Info().SessionID) }),
			},
			condition[R]{"waiting, cut off while its turn comes", cutOff[R]},
		)
	}
	return all
}

// badPaths cannot be right.
var badPaths = []string{
	"", "/", "relative", "/ends/", "/a//b", "/a/../b", "/a/./b", "/a\x00b",
	"/zookeeper", "/zookeeper/quota", "/zookeeper/config/x",
}

func refused[R any](w *world[R]) {
	u := w.user(w.fresh())
	for _, bad := range badPaths {
		if _, err := w.recipe.New(u.client, bad); !errors.Is(err, coord.ErrInvalid) {
			w.Errorf("New at %q: %v, which is not coord.ErrInvalid", bad, err)
		}
	}
	if _, err := w.recipe.New(nil, u.path); !errors.Is(err, coord.ErrInvalid) {
		w.Errorf("New without a client: %v, which is not coord.ErrInvalid", err)
	}
	before := w.server.SessionCounts(u.client.Info().SessionID)
	for _, name := range slices.Sorted(maps.Keys(w.recipe.Refused)) {
		if err := u.outcome(begin(w.ctx, u, w.recipe.Refused[name])); !errors.Is(err, coord.ErrInvalid) {
			w.Errorf("%s: %v, which is not coord.ErrInvalid", name, err)
		}
	}
	if asked := w.server.SessionCounts(u.client.Info().SessionID).Since(before); asked.Total() > 0 {
		w.Errorf("invalid arguments were refused only after these requests: %v", asked)
	}
	u.close()
}

// grace is what a call may take beyond its context to give back what it has.
const grace = 100 * time.Millisecond

func contextEnded[R any](w *world[R], call Call[R]) {
	u := w.user(w.fresh())
	u.prepare("Ready", call.Ready)
	nodes := u.nodes()
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	begun, before := time.Now(), w.server.SessionCounts(u.client.Info().SessionID)
	err := u.outcome(begin(ctx, u, call.Do))
	if asked := w.server.SessionCounts(u.client.Info().SessionID).Since(before); asked.Total() > 0 && !call.Ends {
		w.Errorf("the call makes requests: %v", asked)
	}
	if took := time.Since(begun); took > 0 && !call.Ends {
		w.Errorf("the call takes %v", took)
	}
	if !errors.Is(err, context.Canceled) && !(call.Ends && err == nil) {
		w.Errorf("the call returns %v", err)
	}
	u.left(nodes)
	u.close()
}

// eachRequest makes a call in a fresh place for each of its requests, until a
// fault strikes none of them.
func eachRequest[R any](w *world[R], call Call[R], try func(u *user[R], at zkembed.Match) (struck bool)) {
	for request, struck := 0, true; struck && !w.Failed(); request++ {
		u := w.user(w.fresh())
		u.prepare("Ready", call.Ready)
		struck = try(u, zkembed.Match{Session: u.client.Info().SessionID, Skip: request, Times: 1})
		u.close()
		if w.Failed() {
			w.Logf("it went wrong at request %d", request)
		}
	}
}

func noAnswer[R any](w *world[R], call Call[R]) {
	eachRequest(w, call, func(u *user[R], at zkembed.Match) bool {
		nodes := u.nodes()
		hung := w.server.Inject(at, zkembed.Hang())
		defer hung.Remove()
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		begun := time.Now()
		done := begin(ctx, u, call.Do)
		synctest.Wait()
		struck := hung.Fired() > 0 // otherwise the call is over, or waits
		err := u.outcome(done)
		if took := time.Since(begun); took > time.Second+grace {
			w.Errorf("the call takes %v, its context 1s", took)
		}
		if !struck || err == nil { // the request was one that nobody waits for
			return struck
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("the call returns %v", err)
		}
		if !errors.Is(err, coord.ErrUnconfirmed) && !strings.Contains(err.Error(), "the server has not answered for ") {
			w.Errorf("the error does not say that no server has answered: %v", err)
		}
		u.named(call, err)
		u.left(nodes)
		return struck
	})
}

// named fails if an error does not say what was done, and where. The release of
// what a call had is named by the hold's node.
func (u *user[R]) named(call Call[R], err error) {
	u.Helper()
	at := path.Join(u.path, call.Node)
	var told *coord.OpError
	switch {
	case !errors.As(err, &told):
		u.Errorf("no *coord.OpError is in the error %v", err)
	case !strings.HasPrefix(told.Path+"/", u.path+"/"):
		u.Errorf("the error names another path than %s: %v", u.path, err)
	case call.Op == "" || errors.Is(err, coord.ErrUnconfirmed) || errors.Is(err, coord.ErrLost):
	case told.Op != call.Op || told.Path != at || strings.Count(err.Error(), u.path) > 1:
		u.Errorf("the error does not name %s %s alone: %v", call.Op, at, err)
	}
}

// madeGood is the condition that a lost request is made again.
func madeGood[R any](w *world[R], call Call[R], lose zkembed.Action, unconfirmed bool) {
	eachRequest(w, call, func(u *user[R], at zkembed.Match) bool {
		lost := w.server.Inject(at, lose)
		defer lost.Remove()
		err := u.outcome(begin(w.ctx, u, call.Do))
		switch {
		case err == nil:
			u.done(call)
		case !unconfirmed || !errors.Is(err, coord.ErrUnconfirmed):
			w.Errorf("the call returns %v", err)
		}
		return lost.Fired() > 0
	})
}

// done looks by another client at what a call has done.
func (u *user[R]) done(call Call[R]) {
	u.Helper()
	if call.Done == nil {
		return
	}
	other := u.user(u.path)
	other.prepare("Done", call.Done)
	other.close()
}

func sessionEnded[R any](w *world[R], call Call[R]) {
	eachRequest(w, call, func(u *user[R], at zkembed.Match) bool {
		session := u.client.Info().SessionID
		hung := w.server.Inject(at, zkembed.Hang())
		defer hung.Remove()
		done := begin(w.ctx, u, call.Do)
		synctest.Wait()
		struck := hung.Fired() > 0
		if struck {
			_ = w.server.ExpireSession(session)
		}
		u.survived(call, u.outcome(done))
		return struck
	})
}

// survived fails if a call has another error than that its hold was lost, or
// that it may have been carried out.
func (u *user[R]) survived(call Call[R], err error) {
	u.Helper()
	if err != nil && !(call.Holds && errors.Is(err, coord.ErrLost)) &&
		!((call.Once || call.Unconfirmed) && errors.Is(err, coord.ErrUnconfirmed)) {
		u.Errorf("the call returns %v", err)
	}
	if err != nil {
		u.named(call, err)
	}
}

func closedClient[R any](w *world[R], call Call[R]) {
	u := w.user(w.fresh())
	u.prepare("Ready", call.Ready)
	u.close()
	begun := time.Now()
	u.refusedAsClosed(call, u.outcome(begin(w.ctx, u, call.Do)))
	if took := time.Since(begun); took > 0 {
		w.Errorf("the call takes %v", took)
	}
}

func (u *user[R]) refusedAsClosed(call Call[R], err error) {
	u.Helper()
	if !errors.Is(err, coord.ErrClosed) && !(call.Ends && err == nil) {
		u.Errorf("the client is closed, but the call returns %v", err)
	}
}

func cost[R any](w *world[R], call Call[R]) {
	const trip = time.Millisecond
	u := w.user(w.fresh())
	u.prepare("Ready", call.Ready)
	before := w.server.SessionCounts(u.client.Info().SessionID)
	late := w.server.Inject(zkembed.Match{Session: u.client.Info().SessionID}, zkembed.DelayReply(trip))
	begun := time.Now()
	err := u.outcome(begin(w.ctx, u, call.Do))
	trips := int(time.Since(begun) / trip)
	if err != nil {
		w.Fatalf("without a fault, the call returns %v", err)
	}
	time.Sleep(2 * trip) // for what is done in the background
	spent := w.server.SessionCounts(u.client.Info().SessionID).Since(before)
	if spent.Total() != call.Requests || trips != call.RoundTrips {
		w.Errorf("the call costs %d requests and %d round trips, not %d and %d: %v", spent.Total(), trips, call.Requests,
			call.RoundTrips, spent)
	}
	late.Remove()
	u.done(call)
	u.close()
}
