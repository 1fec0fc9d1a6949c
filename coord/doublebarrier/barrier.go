package doublebarrier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// MaxMembers is the most members a barrier can have: their names must fit into
// one node, and the check that all of them are there into one transaction.
const MaxMembers = 4000

// small is the largest n for which each member lists the others along with its
// create: one request more for each, one round trip less for all.
const small = 32

// Kind is the kind of a member: what marks its node's name.
const Kind string = "member"

const ready = "ready"

// Barrier is a double barrier for n members on a path. It is configuration, not
// state: Enter returns a [Member], which takes part. A Barrier is safe for
// concurrent use, and two goroutines of one process are two members.
type Barrier struct {
	client *coord.Client
	path   string
	ready  record
	size   int
	spec   coord.Spec
	share  int // how many bytes each member may bring
	wait   bool

	least    int           // members that are enough to open a round
	lastCall time.Duration // how long these wait for the rest
}

// Option sets something about a [Barrier].
type Option func(*Barrier) error

// WaitForNextRound lets Enter wait when a round is under way without the
// caller, until that round is over and it finds a place in a later one. Places
// are given in the order of arrival. Without it, Enter fails with [ErrLate].
func WaitForNextRound() Option {
	return func(b *Barrier) error {
		b.wait = true
		return nil
	}
}

// AtLeast lets a round begin with fewer than n members. When least members have
// come, the last call begins; when it has lasted for lastCall, the round begins
// with all that have come by then. All clients should name the same values; a
// client that names a smaller number, or a shorter time, begins the round for
// all.
func AtLeast(least int, lastCall time.Duration) Option {
	return func(b *Barrier) error {
		if least < 1 || least > b.size || lastCall < 0 {
			return fmt.Errorf("%w: at least %d of %d members, after %v: the number must be 1 to %d, and the time not negative",
				coord.ErrInvalid, least, b.size, lastCall, b.size)
		}
		b.least, b.lastCall = least, lastCall
		return nil
	}
}

// MaxShare returns how many bytes each member may bring to a round, as data or
// as a result. One node holds what all of them bring, so it is an equal share
// of the largest packet (1 MB, or [coord.WithMaxPacket]), less what the
// members' names take.
func (b *Barrier) MaxShare() int { return b.share }

// New returns the barrier at path for n members per round, 1 to [MaxMembers].
// It does no I/O. Invalid arguments fail with [coord.ErrInvalid].
func New(client *coord.Client, path string, n int, opts ...Option) (*Barrier, error) {
	if err := recipe.Check(client, path); err != nil {
		return nil, err
	}
	invalid := func(format string, args ...any) error {
		return &coord.OpError{
			Op: "new", Path: path, Err: fmt.Errorf("%w: "+format, append([]any{coord.ErrInvalid}, args...)...),
		}
	}
	if n < 1 || n > MaxMembers {
		return nil, invalid("%d members: it must be 1 to %d", n, MaxMembers)
	}
	own := client.Info()
	length, room := len(own.Chroot)+len(path), (own.MaxPacket-otherBytes)/(n+1)-bytesPerMember
	if length > room {
		return nil, invalid("%d members do not fit into one transaction at a path of %d bytes; at most %d bytes are possible",
			n, length, room)
	}
	b := &Barrier{
		client: client, path: path, ready: record{client, path + "/" + ready}, size: n, least: n,
		share: max(room-length-bytesPerLength, 0),
		// Clients of both dialects meet here: no other recipe uses the path.
		spec: coord.Spec{
			Line: coord.Line{Dir: path, Kinds: []string{Kind}, AnyDialect: true}, Kind: Kind, Unlisted: n > small,
		},
	}
	if err := recipe.Configure(b, path, opts); err != nil {
		return nil, err
	}
	return b, nil
}

// The sizes of the transaction that opens a round: for each member, and once
// more, it holds the path, the name twice and a few numbers.
const (
	otherBytes     = 8192
	bytesPerMember = 2*57 + 30
)

// listing is what stands below the barrier's path: the members, of every round,
// by age, and the names of what members of rounds have brought.
type listing struct {
	line    []coord.Contender
	vectors []string
}

func (b *Barrier) list(ctx context.Context, client *coord.Client) (*listing, error) {
	names, err := client.Children(ctx, b.path)
	if err != nil && !errors.Is(err, coord.ErrNoNode) {
		return nil, err
	}
	return b.sort(names), nil
}

func (b *Barrier) sort(names []string) *listing {
	l := &listing{line: b.order(names)}
	for _, name := range names {
		if IsVector(name) {
			l.vectors = append(l.vectors, name)
		}
	}
	return l
}

// order picks the members out of names and sorts them by age.
func (b *Barrier) order(names []string) []coord.Contender {
	return b.spec.Line.Order(names, b.client.Info().Dialect)
}

func (b *Barrier) node(name string) string { return b.path + "/" + name }

// Status is what can be seen of a barrier from outside.
type Status struct {
	Size    int      // members per round
	Round   int64    // the current round, or if none is open the last; 0 before the first
	Open    bool     // the round has begun and is not over
	Inside  []string // nodes of the current round's members that are there
	Waiting []string // nodes of those who wait for a round to begin, by age
}

// Status reads the barrier: two requests. It fails with [coord.ErrNoNode] if
// the barrier was never used.
func (b *Barrier) Status(ctx context.Context) (Status, error) {
	r, err := b.ready.get(ctx)
	if err != nil {
		return Status{}, recipe.Failure(b.client, "status", b.path, err)
	}
	there, err := b.list(ctx, b.client)
	if err != nil {
		return Status{}, recipe.Failure(b.client, "status", b.path, err)
	}
	out := Status{Size: r.Size, Round: r.Number, Open: r.Open}
	for _, c := range there.line {
		switch {
		case c.Sequence >= r.Next:
			out.Waiting = append(out.Waiting, b.node(c.Name))
		case r.has(c):
			out.Inside = append(out.Inside, b.node(c.Name))
		}
	}
	return out, nil
}

// An Absentee is a member that an open round waits for.
type Absentee struct {
	Index int
	Node  string
	Owner string // as the node names it; "" if the node is gone
	Gone  bool   // it will be missing in the outcome
}

// Absent returns the members of the open round that have not finished, by
// index: none when no round is open. One request, and one for each member, 128
// in a round trip.
func (b *Barrier) Absent(ctx context.Context) ([]Absentee, error) {
	r, err := b.ready.get(ctx)
	var absent []Absentee
	if err == nil {
		absent, err = b.absent(ctx, r)
	}
	return absent, recipe.Failure(b.client, "status", b.path, err)
}

func (b *Barrier) absent(ctx context.Context, r snapshot) ([]Absentee, error) {
	absent, failures := make([]Absentee, len(r.Members)), make([]error, len(r.Members))
	b.each(ctx, r.Members, func(index int, c content, err error) {
		gone := errors.Is(err, coord.ErrNoNode)
		if err != nil && !gone {
			failures[index] = err
		} else if gone || !c.finished {
			absent[index] = Absentee{index, b.node(r.Members[index]), c.owner, gone}
		}
	})
	if err := recipe.JoinedWithin(ctx, failures...); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(absent, func(a Absentee) bool { return a.Node == "" }), nil
}

// Remove deletes what the barrier has left behind. It fails with
// [coord.ErrBusy] while anybody is in it or waits: see [recipe.Remove]. The
// next Enter makes the barrier again.
func (b *Barrier) Remove(ctx context.Context) error {
	return recipe.Remove(ctx, b.client, recipe.Tree{Root: b.path, Parts: []recipe.Part{
		{Nodes: ready}, {Nodes: dataOf + "*"}, {Nodes: resultsOf + "*"}, {Nodes: reasonOf + "*"}, {Nodes: "*", Who: Kind},
	}})
}

var (
	// ErrLate: a round is under way without the caller, who came after its
	// members were complete. Call Enter again later, or see [WaitForNextRound].
	ErrLate = errors.New("a round is under way without this member")
	// ErrIncomplete: the round is over, but not every member was seen to
	// finish; the error is an [*IncompleteError], the same for all who left.
	ErrIncomplete = errors.New("members are missing")
	// ErrBroken: a client deleted the node ready while a round was open, or
	// wrote something else into it. How the round ended is not known.
	ErrBroken = errors.New("the barrier was tampered with while it was in use")
)

// IncompleteError is the outcome of a round in which not every member was seen
// to finish. It matches [ErrIncomplete].
type IncompleteError struct {
	Round   int64
	Members int
	// Missing are the indexes ([Member.Index]) of members that crashed, lost
	// their session, gave up, or crashed after they had finished but before
	// that was seen.
	Missing []int
	// Reasons are why members gave up, by index: what they handed to
	// [Member.GiveUp], or the error of a function of [Barrier.Do], each up to
	// 200 bytes. A member that crashed has none. Only the first 16 are kept,
	// and of these as many as fit into 1 KiB.
	Reasons map[int]string
}

func (e *IncompleteError) Error() string {
	return fmt.Sprintf("round %d ended with %d of %d members missing: %v%s",
		e.Round, len(e.Missing), e.Members, e.Missing, inWords(e.Missing, e.Reasons))
}

// Is makes the error match [ErrIncomplete].
func (e *IncompleteError) Is(target error) bool { return target == ErrIncomplete }
