package lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// Delay has the next holder wait for d when the holder before did not release
// the lock: it crashed, was cut off beyond its session, its hold was lost, its
// node deleted by force, or its client closed while it held. In that time,
// requests that the former holder had sent, or its process that does not know
// of the loss yet, come to an end. After a release there is no delay.
//
// All who use the path must have the option: a holder without it does not wait,
// and leaves no record by which others could notice its end. They may differ in
// d: each waits for its own.
//
// The delay begins when the first one after the unclean end has its turn in the
// line and notes that; it knows nothing of the time before. It goes on when
// that contender dies, gives up, or was only a try, which fails with
// [coord.ErrBusy]: the next waits for the rest. The rest is the difference of
// two times of the servers, and never more than d. While one waits, the others
// stay in line behind it. An acquire whose context ends while its record is
// under way can leave the record, too, which counts as an unclean end.
//
// An acquire costs one request more, a release none: the record, a persistent
// node beside the claims, is made under the hold and deleted in one transaction
// with its node. After an unclean end an acquire costs four more. A hold that
// [recipe.Transactor.Release] releases, or whose [recipe.OnRelease] is called,
// counts as one that was not released.
func Delay(d time.Duration) Option {
	return func(m *Mutex) error {
		if d <= 0 {
			return fmt.Errorf("%w: a delay of %v; it must be above 0", coord.ErrInvalid, d)
		}
		m.delay = d
		return nil
	}
}

// record is the path of the node that names the claim that holds, from the
// grant to the release. If it names another claim, that claim's hold did not
// end in order. A number after the name then says when the delay began, by the
// servers' clock, or is 0 if the delay began when the record was last written.
func (m *Mutex) record() string { return m.Path() + "/holder" }

// inLine gets the lock from the line, after the delay if there is to be one;
// with try, only if it need not wait for others.
func (m *Mutex) inLine(ctx context.Context, try bool) (*coord.Hold, error) {
	if m.delay > 0 {
		return m.afterDelay(ctx, try)
	}
	return acquirer(try)(ctx, m.client, &m.spec, coord.First)
}

// acquirer returns [recipe.Acquire] or its TryAcquire.
func acquirer(try bool) func(context.Context, *coord.Client, *coord.Spec, coord.Rule) (*coord.Hold, error) {
	if try {
		return recipe.TryAcquire
	}
	return recipe.Acquire
}

func (m *Mutex) afterDelay(ctx context.Context, try bool) (*coord.Hold, error) {
	acquire := acquirer(try)
	outer, nested := coord.HeldIn(ctx, m.client, m.Path())
	for {
		h, err := acquire(ctx, m.client, &m.spec, coord.First)
		if err != nil || nested && h.Node() == outer.Node() {
			return h, err
		}
		granting, cancel := context.WithCancel(ctx)
		g := grant{m, h, path.Base(h.Node()), try}
		err = recipe.Retry(h.Context(granting), m.client, g.begin)
		cancel()
		if err == nil {
			err = recipe.OnRelease(h, coord.DeleteOp(m.record(), -1))
		}
		if err == nil {
			return h, nil
		}
		err = cmp.Or(h.Err(), err)
		h.Abandon()
		switch {
		case ctx.Err() != nil:
			return nil, recipe.Failure(m.client, "acquire", m.Path(), recipe.Ended(ctx))
		case !errors.Is(err, coord.ErrLost):
			return nil, recipe.Failure(m.client, "acquire", m.Path(), err)
		}
		ctx = recipe.Patient(ctx)
	}
}

// grant is a hold that is to be put on record before it is handed out.
type grant struct {
	*Mutex
	hold *coord.Hold
	name string // of its node
	try  bool
}

// begin puts the hold on record, after the delay if the record is of another.
// ctx is the hold's. It may be called again after a lost reply.
func (g grant) begin(ctx context.Context) error {
	for own := coord.CreateOp(g.record(), []byte(g.name)); ; {
		_, err := g.hold.Txn(ctx, own)
		if !errors.Is(err, coord.ErrNodeExists) && !errors.Is(err, coord.ErrBadVersion) && !errors.Is(err, coord.ErrNoNode) {
			return err
		}
		data, stat, err := g.client.Get(ctx, g.record())
		switch {
		case errors.Is(err, coord.ErrNoNode):
			own = coord.CreateOp(g.record(), []byte(g.name))
			continue
		case err != nil:
			return err
		case string(data) == g.name: // the reply was lost
			return nil
		}
		version, err := g.wait(ctx, string(data), stat)
		if err != nil {
			return err
		}
		own = coord.SetOp(g.record(), []byte(g.name), version)
	}
}

// wait waits for what is left of the delay after the unclean end of the hold
// that is on record. It returns the version of the record then.
func (g grant) wait(ctx context.Context, record string, stat coord.Stat) (int32, error) {
	former, since, noted := strings.Cut(record, " ")
	begun, err := strconv.ParseInt(since, 10, 64)
	if noted && (err != nil || begun == 0) {
		begun = stat.Modified.UnixMilli()
	}
	note := fmt.Appendf(nil, "%s %d", former, begun)
	results, err := g.hold.Txn(ctx, coord.SetOp(g.record(), note, stat.Version))
	switch {
	case errors.Is(err, coord.ErrBadVersion), errors.Is(err, coord.ErrNoNode):
		return stat.Version, nil // which is refused, too
	case err != nil:
		return 0, err
	}
	stat, left := results[0].Stat, g.delay
	if begun > 0 {
		left -= max(0, stat.Modified.Sub(time.UnixMilli(begun)))
	}
	if left > 0 && g.try {
		return 0, fmt.Errorf("%w: %s did not release it, and the next may hold in %v", coord.ErrBusy, former, left)
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return stat.Version, nil
	case <-ctx.Done():
		return 0, recipe.Ended(ctx)
	}
}
