package coord

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zkcoord/zkcoord/coord/internal/dialect"
	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// Spec says what a claim in a line is like.
type Spec struct {
	Line Line
	Kind string
	Data []byte // of the node; by default the client's identity; see [OwnData]
	// Exclusive: at most one claim of this line holds at a time, and its hold
	// has a token.
	Exclusive bool
	// Reentrant: inside of a hold of the same line (see [HeldIn]) that covers
	// it, the claim is another handle of that hold, released on its own,
	// without a request.
	Reentrant bool
	// Unlisted: Join does not list the directory along with the create. It is
	// for claims that need no rule, such as the members of a large group, each
	// of which would list all others.
	Unlisted bool
}

// NameSpec says what a claim of a name is like: a plain ephemeral node of
// exactly this path, which stands in no line. Unless With or Proof is used, no
// other client must want the same name: a delete that is repeated after a lost
// reply would delete its node.
type NameSpec struct {
	Path string
	// Data of the node; by default the client's identity. They must be unique
	// if two claims of one client may want the same name.
	Data []byte
	// Exclusive: the hold has a token.
	Exclusive bool
	// With are operations that take effect along with the create of the node,
	// or not at all. With them the directory must exist, and others may want
	// the same name. To tell the node from one of theirs, its version is 1,
	// where a node just created has 0.
	With []Op
	// Proof lists checks that are true only while this claim owns the name. The
	// node is deleted only if they pass, or if a checked node is gone.
	Proof []Op
}

// shape is what a claim's node is like: a place in a line, a name, or a part of
// a hold.
type shape struct {
	Spec               // of a name and of a part: the directory, data and token
	name        string // of a name and of a part
	with, proof []Op   // of a name that others want, too
	part        *Hold  // of which the node is a part
}

// shape is that of a claim in a line.
func (s Spec) shape(ctx context.Context, c *Client) (*shape, error) {
	if err := checkPath(s.Line.Dir); err != nil {
		return nil, err
	}
	if s.Kind == "" || strings.ContainsFunc(s.Kind, dialect.NotAlphanumeric) {
		return nil, invalid("kind %q: letters and digits only", s.Kind)
	}
	if s.Data == nil {
		s.Data = c.dataWithin(ctx)
	}
	if !s.Line.has(s.Kind) {
		s.Line.Kinds = append(slices.Clone(s.Line.Kinds), s.Kind)
	}
	return &shape{Spec: s}, nil
}

// dataWithin are a claim's data by default: the client's identity, and the
// holds that the process runs under and ctx carries.
func (c *Client) dataWithin(ctx context.Context) []byte {
	return dialect.Under(c.opts.identity, slices.Concat(c.opts.held, heldNodes(ctx)))
}

// shape is that of a claim of a name.
func (s NameSpec) shape(ctx context.Context, c *Client) (*shape, error) {
	if err := checkPath(s.Path); err != nil {
		return nil, err
	}
	dir, name := session.Parent(s.Path), s.Path[strings.LastIndexByte(s.Path, '/')+1:]
	if name == "" {
		return nil, invalid("the root is no name; name a path below it")
	}
	if s.Data == nil {
		s.Data = c.dataWithin(ctx)
	}
	in := Spec{Line: Line{Dir: dir}, Data: s.Data, Exclusive: s.Exclusive, Unlisted: true}
	return &shape{Spec: in, name: name, with: s.With, proof: s.Proof}, nil
}

// isShared reports whether other clients may want the same name.
func (s *shape) isShared() bool { return len(s.with)+len(s.proof) > 0 }

// node is what the claim's node is like.
func (s *shape) node(c *Client) (znode.Spec, error) {
	node := znode.Spec{Dir: c.full(s.Line.Dir), Name: s.name, Data: s.Data, Plain: true}
	switch {
	case s.name == "":
		node.Name, node.Plain = dialect.Prefix(c.opts.dialect, dialect.GUID(c.opts.dialect), s.Kind), false
	case s.part != nil:
		node.Barred = s.part.Err
	case len(s.proof) > 0:
		proof, err := c.requests(s.proof)
		if err != nil {
			return node, err
		}
		node.Proof = proof
	}
	node.Shared = s.isShared()
	return node, nil
}

// create sends the create of the node once.
func (s *shape) create(cl *claim) (made string, czxid int64, err error) {
	c := cl.client
	path, flags := s.request(cl)
	if s.part != nil {
		// Ends with the session.
		_, err := s.part.Txn(context.Background(), CreateOp(c.relative(path), s.Data, Mode(flags)))
		return path, 0, err
	}
	if !s.isShared() {
		return cl.sess.Create(path, s.Data, flags, c.opts.acl)
	}
	node := c.relative(path)
	ops := append([]Op{CreateOp(node, s.Data, Mode(flags)), SetOp(node, s.Data, 0)}, s.with...)
	results, err := c.txn(context.Background(), cl.sess, ops) // ends with the session
	if err != nil {
		return "", 0, callersOwn(err, 2)
	}
	return c.full(results[0].Path), results[1].Stat.Czxid, nil
}

// begin sends the create, unless that may have to wait for something.
func (s *shape) begin(cl *claim) *session.Creation {
	if s.part != nil || s.isShared() {
		return nil
	}
	path, flags := s.request(cl)
	return cl.sess.BeginCreate(path, s.Data, flags, cl.client.opts.acl)
}

// request is what the create asks for.
func (s *shape) request(cl *claim) (path string, flags int32) {
	path = znode.Join(cl.node.Spec.Dir, cl.node.Spec.Name)
	if s.name == "" {
		return path, wire.EphemeralSequential
	}
	return path, wire.Ephemeral
}

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

// checkPath applies the server's rules, to report a mistake before anything is
// sent.
func checkPath(path string) error {
	switch {
	case path == "":
		return invalid("the path is empty")
	case path[0] != '/':
		return invalid("path %q must start with /", path)
	case path == "/":
		return nil
	case strings.HasSuffix(path, "/"):
		return invalid("path %q must not end with /", path)
	case !utf8.ValidString(path):
		return invalid("path %q is not UTF-8", path)
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		if err := checkName(name); err != nil {
			return fmt.Errorf("path %q: %w", path, err)
		}
	}
	return nil
}

// checkName checks one segment of a path.
func checkName(name string) error {
	switch {
	case name == "":
		return invalid("a name is empty")
	case name == "." || name == "..":
		return invalid("the name %q is not allowed", name)
	case strings.Contains(name, "/"):
		return invalid("the name %q contains /", name)
	}
	for _, r := range name {
		// The servers see each half of a character beyond U+FFFF, a surrogate.
		if r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0 {
			return invalid("the name %q contains the character %U, which ZooKeeper does not allow", name, r)
		}
	}
	return nil
}
