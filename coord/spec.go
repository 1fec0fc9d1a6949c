package coord

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/zkcoord/zkcoord/coord/internal/dialect"
	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// Spec describes a claim in a line.
type Spec struct {
	Line Line
	Kind string
	Data []byte // of the node; by default the client's identity; see inspect.OwnData
	// Recipe is the path of the recipe that the claim belongs to, as observers
	// are told; by default the directory of the line.
	Recipe string
	// Exclusive: at most one claim of this line holds at a time, and its hold
	// has a token.
	Exclusive bool
	// Reentrant: inside of a hold of the same line (see [HeldIn]) that covers
	// it, the claim is another handle of that hold, released on its own,
	// without a request.
	Reentrant bool
	// Unlisted: the directory is not listed along with the create. Use it for
	// claims that need no rule, such as the members of a large group, each of
	// which would list all others.
	Unlisted bool
}

// NameSpec describes a claim of a name: a plain ephemeral node of exactly this
// path, which stands in no line. Other clients may want the same name: the
// request that makes the node also sets its data, which makes its version 1,
// where a node just created has 0, and the node is deleted only at its version.
// A deletion whose reply was lost is repeated only after a look that finds this
// claim's node. In two cases a deletion or [Hold.Txn] could still meet another
// claim's node, unless Proof rules that out: this claim's node was broken by
// hand, and this client does not know it yet; or a server carries the request
// out late (docs/design.md).
type NameSpec struct {
	Path string
	// Data of the node; by default the client's identity. The data must be
	// unique if two claims of one client may want the same name.
	Data []byte
	// Recipe is the path of the recipe that the claim belongs to, as observers
	// are told; by default the directory of the name.
	Recipe string
	// Exclusive: the hold has a token.
	Exclusive bool
	// Retain: a hold that is lost while its session lives leaves its node, and
	// the next recipe.AcquireName of the name by this client takes the node
	// back: nobody sees the name free, and the token is the same. Until then
	// the node stays; [Hold.Release] of the lost hold deletes it. Use it for an
	// owner that acquires the name again as soon as the hold is lost.
	Retain bool
	// With are operations that take effect along with the create of the node,
	// or not at all. With them the directory must exist.
	With []Op
	// Proof lists checks that are true only while this claim owns the name. The
	// node is deleted only if they pass, or if a checked node is gone, and
	// [Hold.Txn] makes them; recipe.Transactor.Release makes those of its
	// caller.
	Proof []Op
}

// complete checks the spec of a claim in a line, and returns it with the
// defaults filled in. It leaves s alone, which many calls may share.
func (s *Spec) complete(ctx context.Context, c *Client) (*Spec, error) {
	if s == nil {
		return nil, wire.Invalid("the spec is nil")
	}
	own := *s
	if err := wire.CheckPath(own.Line.Dir); err != nil {
		return nil, err
	}
	if own.Kind == "" || strings.ContainsFunc(own.Kind, dialect.NotAlphanumeric) {
		return nil, wire.Invalid("kind %q: letters and digits only", own.Kind)
	}
	if own.Data == nil {
		own.Data = c.dataWithin(ctx)
	}
	own.Recipe = cmp.Or(own.Recipe, own.Line.Dir)
	if own.Line.Dialect == c.opts.dialect {
		own.Line.Dialect = ""
	}
	if err := own.mayBeDescribed(); err != nil {
		return nil, err
	}
	if !own.Line.has(own.Kind) {
		own.Line.Kinds = append(slices.Clone(own.Line.Kinds), own.Kind)
	}
	return c.share(&own), nil
}

// dir is the line's directory, for errors.
func (s *Spec) dir() string {
	if s == nil {
		return ""
	}
	return s.Line.Dir
}

// share returns a spec equal to s: the last one that was asked for, if it is
// equal, since thousands wait in one line.
func (c *Client) share(s *Spec) *Spec {
	last := c.lastSpec.Load()
	if last == nil || !last.equals(s) {
		own := *s
		own.Data, own.Line.Kinds = bytes.Clone(s.Data), slices.Clone(s.Line.Kinds) // the caller may change its own
		last = &own
		c.lastSpec.Store(last)
	}
	return last
}

func (s *Spec) equals(o *Spec) bool {
	return s.Line.Dir == o.Line.Dir && s.Line.Dialect == o.Line.Dialect && s.Line.AnyDialect == o.Line.AnyDialect &&
		slices.Equal(s.Line.Kinds, o.Line.Kinds) && s.Kind == o.Kind && bytes.Equal(s.Data, o.Data) && s.Recipe == o.Recipe &&
		s.Exclusive == o.Exclusive && s.Reentrant == o.Reentrant && s.Unlisted == o.Unlisted
}

// mayBeDescribed returns why the claim cannot stand in a described dialect's
// line, if its line is one.
func (s *Spec) mayBeDescribed() error {
	d := s.Line.Dialect
	switch err := CheckDialect(d); {
	case err != nil:
		return err
	case d.IsDescribed() && (!s.Exclusive || s.Line.AnyDialect):
		return wire.Invalid(
			"a claim of kind %q shares, or its line does, and names of the dialect %q do not say who shares; "+
				"such a line is a mutex's or an election's", s.Kind, string(d))
	}
	return nil
}

// dataWithin are a claim's data by default: the client's identity, and the
// holds that the process runs under and ctx carries.
func (c *Client) dataWithin(ctx context.Context) []byte {
	return dialect.Under(c.opts.identity, slices.Concat(c.opts.held, heldNodes(ctx)))
}

// claim prepares a claim of the name.
func (s NameSpec) claim(ctx context.Context, c *Client) (cl *claim, err error) {
	if err := wire.CheckPath(s.Path); err != nil {
		return nil, err
	}
	dir, name := session.Parent(s.Path), s.Path[strings.LastIndexByte(s.Path, '/')+1:]
	if name == "" {
		return nil, wire.Invalid("the root is no name; name a path below it")
	}
	if s.Data == nil {
		s.Data = c.dataWithin(ctx)
	}
	cl = c.newClaim(
		&Spec{
			Line: Line{Dir: dir}, Data: s.Data, Recipe: cmp.Or(s.Recipe, dir), Exclusive: s.Exclusive, Unlisted: true,
		}, name)
	s.Proof = slices.Clip(s.Proof)
	cl.named, cl.node.Plain = &s, &znode.Plain{Shared: true, Data: s.Data}
	if len(s.Proof) > 0 {
		cl.node.Plain.Proof, err = c.requests(s.Proof)
	}
	return cl, err
}

// Dialect is a family of recipes whose node names and data this package writes
// and understands: with it, programs in several languages share a path. One
// directory has one dialect: no single node name is right for both.
//
// A client has the dialect [Curator] or [Kazoo] ([WithDialect]). A mutex and an
// election can stand in the line of any other lock, by a described dialect,
// which their option Dialect sets: [ZooKeeper], [Numbers], [Named], or a
// [Description] of your own. As text, a dialect is what the command's --dialect
// takes.
//
// Claims whose names have no {guid} are known by their session. They cost no
// request more, but the creates of one client in one line wait for each other,
// and after a lost reply each contender of the line whose name could be ours is
// read once. In such a line a name can recur when the directory was deleted.
type Dialect = dialect.Dialect

const (
	// Curator is the layout of Apache Curator's recipes, which go-zookeeper's
	// own Lock can read as well. The default.
	Curator = dialect.Curator
	// Kazoo is the layout of Python's Kazoo.
	Kazoo = dialect.Kazoo
	// ZooKeeper is the layout of ZooKeeper's own WriteLock, "x-<session>-". For
	// a mutex or an election.
	ZooKeeper = dialect.ZooKeeper
	// Numbers is the layout of claims whose names are sequence numbers alone.
	// For a mutex or an election.
	Numbers = dialect.Numbers
	// Unknown is the dialect of contenders of unknown recipes: nodes of other
	// names that end in the ten digits of a sequence number, whether they
	// belong to a session or not. No client has it.
	Unknown = dialect.Unknown
)

// Named is the layout of "<name>_lock_", where several locks share a directory:
// names that begin otherwise are other locks'. For a mutex or an election.
func Named(name string) Dialect { return dialect.Named(name) }

// CheckDialect fails with [ErrInvalid] if the text of a dialect cannot be read.
func CheckDialect(d Dialect) error {
	if err := dialect.Check(d); d.IsDescribed() && err != nil {
		return wire.Invalid("%v", err)
	}
	return nil
}

// Description describes a line of your own: [Description.Dialect] makes a
// dialect of it. The order is the order of the sequence numbers: a recipe that
// sorts whole names, behind a {session} or {guid}, has another order, and is
// not to be joined.
type Description = dialect.Description

// What other names in the directory are that end with a sequence number.
const (
	RefuseOthers = dialect.RefuseOthers // contenders that cannot be honoured; the default
	HonourOthers = dialect.HonourOthers // contenders like any
	IgnoreOthers = dialect.IgnoreOthers // claims of other lines
)

// Contender is a claim as its node's name describes it.
type Contender struct {
	Name string // of the node
	GUID string // "" if the recipe is unknown
	// Kind is what it claims: "lock", "read", or a word of your own, of letters
	// and digits; "" if the recipe is unknown.
	Kind     string
	Sequence int32
	Dialect  Dialect
}
