package lock

import (
	"fmt"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
)

// Dialect has the mutex stand in the line of another recipe, whose holders it
// excludes and which exclude it: [coord.ZooKeeper], [coord.Numbers],
// [coord.Named], or one that a [coord.Description] makes. Without it the
// mutex's names are its client's. See docs/interop.md for how a fleet changes
// from a lock of its own to this one.
//
// Such a line takes no [Delay], which keeps a node beside the claims, and no
// read/write lock. To ask for a hold there, use [inspect.RevokeIn].
func Dialect(d coord.Dialect) Option {
	return func(m *Mutex) error {
		m.spec.Line.Dialect = d
		return coord.CheckDialect(d)
	}
}

// Data sets the data of the mutex's nodes, by default the client's identity. It
// is for a line whose other contenders read them.
func Data(data []byte) Option {
	return func(m *Mutex) error {
		m.spec.Data = append([]byte{}, data...)
		return inspect.CheckData(data)
	}
}

// checkDialect refuses what does not go with a described line.
func (m *Mutex) checkDialect() error {
	if m.delay > 0 && m.spec.Line.Dialect != "" {
		return fmt.Errorf(
			"%w: a delay needs a node beside the claims, which the others in a line of the dialect %q may take for a contender",
			coord.ErrInvalid, m.spec.Line.Dialect)
	}
	return nil
}
