package semaphore

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/zkcoord/zkcoord/coord"
)

// Layout is where a dialect keeps a semaphore's nodes, for programs that look
// at one.
type Layout struct {
	Queue  coord.Line // of the clients that want leases: a mutex
	Leases coord.Line // every child counts
	Limit  string     // the node whose data are the limit
	kazoo  bool
}

// LayoutOf returns the layout of Curator's InterProcessSemaphoreV2, which
// stores no limit, with ours where its SharedCount can read it; or the layout
// of Kazoo's Semaphore.
func LayoutOf(d coord.Dialect, path string) Layout {
	lock, lease := []string{"lock"}, []string{Kind}
	if d == coord.Kazoo {
		return Layout{coord.Line{Dir: path + "-__lock__", Kinds: lock}, coord.Line{Dir: path, Kinds: lease}, path, true}
	}
	return Layout{coord.Line{Dir: path + "/locks", Kinds: lock}, coord.Line{Dir: path + "/leases", Kinds: lease}, path + "/limit", false}
}

// Kind is the kind of a lease.
const Kind string = "lease"

// Parts are the names of the nodes below a semaphore's path that are no leases.
func Parts() []string { return []string{"leases", "locks", "limit"} }

// Order picks the leases out of the names of the children of Leases.Dir: in
// order of age for Curator, whose names have a number; Kazoo's do not.
func (l Layout) Order(names []string) (leases []coord.Contender) {
	if !l.kazoo {
		return l.Leases.Order(names, coord.Curator)
	}
	for _, name := range names {
		if len(name) == 2*guidBytes && strings.Trim(name, "0123456789abcdef") == "" {
			leases = append(leases, coord.Contender{Name: name, Kind: Kind, Dialect: coord.Kazoo})
		}
	}
	return leases
}

// guidBytes is the length of the GUID that names a lease of Kazoo's.
const guidBytes = 16

// stand makes a lease, and lists them along with it if that is of use. Kazoo's
// has no number. Its name is taken if this client gave up a session in which it
// made the lease: that node counts until the servers end the session.
func (l Layout) stand(ctx context.Context, c *coord.Client, exclusive, list bool) (h *coord.Hold, names []string, err error) {
	if !l.kazoo {
		return c.Stand(ctx, coord.Spec{Line: l.Leases, Kind: Kind, Exclusive: exclusive, Unlisted: !list})
	}
	for taken := true; taken; taken = errors.Is(err, coord.ErrNodeExists) {
		var id [guidBytes]byte
		_, _ = rand.Read(id[:]) // never fails
		h, err = c.AcquireName(ctx, coord.NameSpec{Path: l.Leases.Dir + "/" + hex.EncodeToString(id[:]), Exclusive: exclusive})
	}
	if err == nil && list {
		if names, err = c.Children(ctx, l.Leases.Dir); err != nil {
			h.Abandon()
		}
	}
	return h, names, err
}

func (l Layout) encode(limit int) []byte {
	if l.kazoo {
		return strconv.AppendInt(nil, int64(limit), 10)
	}
	return binary.BigEndian.AppendUint32(nil, uint32(limit))
}

// decode reads a limit; it is 0 if none was stored.
func (l Layout) decode(data []byte) (limit int, err error) {
	switch {
	case len(data) == 0:
		return 0, nil
	case l.kazoo:
		limit, err = strconv.Atoi(strings.TrimSpace(string(data)))
	case len(data) == 4:
		limit = int(int32(binary.BigEndian.Uint32(data)))
	}
	if err != nil || limit < 1 || limit > math.MaxInt32 {
		return 0, fmt.Errorf("%w: the data %.40q of %s are no limit; SetLimit replaces them", ErrLimit, data, l.Limit)
	}
	return limit, nil
}
