package semaphore

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/zkcoord/zkcoord/coord"
)

// layout says where a dialect keeps what.
type layout struct {
	queue  coord.Line // of those that want leases: a mutex
	leases coord.Line // every child counts
	limit  string     // the node whose data are the limit
	kazoo  bool
}

// layoutOf returns the layout of Curator's InterProcessSemaphoreV2, which keeps
// a limit nowhere, with ours where its SharedCount can read it; or that of
// Kazoo's Semaphore.
func layoutOf(d coord.Dialect, path string) layout {
	lock, lease := []string{"lock"}, []string{"lease"}
	if d == coord.Kazoo {
		return layout{coord.Line{Dir: path + "-__lock__", Kinds: lock}, coord.Line{Dir: path, Kinds: lease}, path, true}
	}
	return layout{coord.Line{Dir: path + "/locks", Kinds: lock}, coord.Line{Dir: path + "/leases", Kinds: lease}, path + "/limit", false}
}

// stand makes a lease, and lists them along with it if that is of use. Kazoo's
// has no number.
func (l layout) stand(ctx context.Context, c *coord.Client, exclusive, list bool) (h *coord.Hold, names []string, err error) {
	if !l.kazoo {
		return c.Stand(ctx, coord.Spec{Line: l.leases, Kind: "lease", Exclusive: exclusive, Unlisted: !list})
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	h, err = c.AcquireName(ctx, coord.NameSpec{Path: l.leases.Dir + "/" + hex.EncodeToString(id[:]), Exclusive: exclusive})
	if err == nil && list {
		if names, err = c.Children(ctx, l.leases.Dir); err != nil {
			h.Abandon()
		}
	}
	return h, names, err
}

func (l layout) encode(limit int) []byte {
	if l.kazoo {
		return strconv.AppendInt(nil, int64(limit), 10)
	}
	return binary.BigEndian.AppendUint32(nil, uint32(limit))
}

// decode reads a limit; it is 0 if none was stored.
func (l layout) decode(data []byte) (limit int, err error) {
	switch {
	case len(data) == 0:
		return 0, nil
	case l.kazoo:
		limit, err = strconv.Atoi(strings.TrimSpace(string(data)))
	case len(data) == 4:
		limit = int(int32(binary.BigEndian.Uint32(data)))
	}
	if err != nil || limit < 1 || limit > math.MaxInt32 {
		return 0, fmt.Errorf("%w: the data %.40q of %s are no limit; SetLimit replaces them", ErrLimit, data, l.limit)
	}
	return limit, nil
}
