package coord

import "github.com/zkcoord/zkcoord/coord/internal/dialect"

// Dialect is a family of recipes whose node names and data this package writes
// and understands: with it, programs in several languages share a path. One
// directory has one dialect: no single node name is right for both.
type Dialect = dialect.Dialect

const (
	// Curator is the layout of Apache Curator's recipes, which go-zookeeper's
	// own Lock can read as well. The default.
	Curator = dialect.Curator
	// Kazoo is the layout of Python's Kazoo.
	Kazoo = dialect.Kazoo
)

// Contender is a claim as its node's name describes it.
type Contender struct {
	Name     string // of the node
	GUID     string
	Kind     string // what it claims: "lock", "read", or a word of your own, of letters and digits
	Sequence int32
	Dialect  Dialect
}
