package shards

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// run is a call of [Shards.Run]: memberships, one after the other.
type run struct {
	*Shards
	f     Func
	begin sync.Once
	leave chan struct{} // closed by Leave
	left  chan struct{} // closed at the end
	news  chan struct{} // has an element when the member's record has changed

	mu       sync.Mutex
	known    list                // the newest that the member came with, or has learned
	last     *Plan               // the newest plan that it has read, or nil
	toldList int64               // the version of a newer list that was told of
	troubles map[string]*trouble // by key
	term     *term               // of the moment, or nil
}

func (r *run) leaving() bool { return isClosed(r.leave) }

// record is what the member's node says.
func (r *run) record() record {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := record{
		Format: planFormat, Member: r.self, List: r.known.hash(), Version: r.known.version, Keys: told(r.troubles),
	}
	rec.Leaving = r.leaving()
	return rec
}

// changed has the member's record written.
func (r *run) changed() {
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// terms are the memberships. The first must succeed.
func (r *run) terms(ctx context.Context) error {
	join := func(ctx context.Context) (*coord.Hold, error) {
		data, _ := json.Marshal(r.record()) // never fails
		h, _, err := recipe.Join(ctx, r.client,
			&coord.Spec{Line: r.members().Line, Kind: "member", Recipe: r.path, Data: data, Unlisted: true})
		return h, err
	}
	h, err := join(ctx)
	for err == nil {
		var over bool
		if over, err = r.member(ctx, h); over || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return recipe.Failure(r.client, "run", r.path, recipe.Ended(ctx))
		}
		err = r.insist(ctx, r.delayed, func(ctx context.Context) (err error) {
			h, err = join(ctx)
			return err
		})
	}
	return recipe.Failure(r.client, "run", r.path, err)
}

// refusal is why this process may not be a member.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// insist calls f until it succeeds, with longer and longer pauses, and reports
// each attempt. It fails if ctx has ended, the client was closed, or the member
// is refused or lost.
func (r *run) insist(ctx context.Context, told func(attempt), f func(context.Context) error) error {
	for pause := new(backoff); ; {
		begun := time.Now()
		err := f(ctx)
		if err == nil || ctx.Err() != nil || errors.Is(err, coord.ErrLost) || errors.Is(err, coord.ErrClosed) ||
			errors.As(err, new(refusal)) {
			return err
		}
		failed := pause.failed(err, time.Since(begun))
		told(failed)
		select {
		case <-time.After(failed.again):
		case <-ctx.Done():
			return recipe.Ended(ctx, err)
		}
	}
}

// delayed reports what the servers have refused.
func (r *run) delayed(a attempt) { r.tell(Event{MemberIsDelayed, "", a.err, a.count, a.again}) }

func (r *run) toLeave() { r.begin.Do(func() { close(r.leave) }) }

// announcePause is the time between two writes of a member's record, unless it
// is to leave.
const announcePause = time.Second

var errNoList = errors.New("there is no list of keys yet, and this member has none; it waits for one")

func (r *run) knows() list {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known
}
