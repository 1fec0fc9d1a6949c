package coord

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
)

// Spec says what a claim in a line is like.
type Spec struct {
	Line Line
	Kind string
	Data []byte // of the node; by default the client's identity
	// Exclusive: at most one claim of this line holds at a time, so that its
	// hold has a token.
	Exclusive bool
	// Reentrant: inside of a hold of the same line (see [HeldIn]) that covers
	// it, the claim is another handle of that hold, released on its own, without a
	// request.
	Reentrant bool
	// Unlisted: Join does not list the directory along with the create. It is
	// for claims that need no rule, such as the members of a large group, each of
	// which would list all others.
	Unlisted bool
}

// NameSpec says what a claim of a name is like: a plain ephemeral node of
// exactly this path, which stands in no line. Unless With or Proof is used,
// no other client must want the same name: a delete that is repeated after a lost
// reply would delete its node.
type NameSpec struct {
	Path string
	// Data of the node; by default the client's identity. They must be unique if
	// two claims of one client may want the same name.
	Data []byte
	// Exclusive: the hold has a token.
	Exclusive bool
	// With are operations that take effect along with the create of the node, or
	// not at all. With them the directory must exist, and others may want the
	// same name. So that the node is told from one of theirs, its version is 1,
	// where a node just created has 0.
	With []Op
	// Proof are checks that hold as long as the claim is this one's and no other
	// of the same name: its node is deleted only while they do, or when a node
	// that they check is gone, without which nobody makes such a claim.
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
func (s Spec) shape(c *Client) (*shape, error) {
	if err := checkPath(s.Line.Dir); err != nil {
		return nil, err
	}
	if s.Kind == "" || strings.ContainsFunc(s.Kind, notAlphanumeric) {
		return nil, invalid("kind %q: letters and digits only", s.Kind)
	}
	if s.Data == nil {
		s.Data = []byte(c.opts.identity)
	}
	if !s.Line.has(s.Kind) {
		s.Line.Kinds = append(slices.Clone(s.Line.Kinds), s.Kind)
	}
	return &shape{Spec: s}, nil
}

// shape is that of a claim of a name.
func (s NameSpec) shape(c *Client) (*shape, error) {
	if err := checkPath(s.Path); err != nil {
		return nil, err
	}
	dir, name := session.Parent(s.Path), s.Path[strings.LastIndexByte(s.Path, '/')+1:]
	if name == "" {
		return nil, invalid("the root is no name; name a path below it")
	}
	if s.Data == nil {
		s.Data = []byte(c.opts.identity)
	}
	in := Spec{Line: Line{Dir: dir}, Data: s.Data, Exclusive: s.Exclusive, Unlisted: true}
	return &shape{Spec: in, name: name, with: s.With, proof: s.Proof}, nil
}

// isShared reports whether other clients may want the same name.
func (s *shape) isShared() bool { return len(s.with)+len(s.proof) > 0 }

// Claim is an own ephemeral node and what it stands for. It belongs to the
// session in which it was made, and to nobody else: its name carries a GUID.
type Claim struct {
	client *Client
	sess   *session.Session
	shape  *shape
	node   znode.Node
	joined time.Time
	view   *session.Listing // the directory as listed along with the create, or nil
	wake   chan struct{}    // something happened to the node or its session

	mu       sync.Mutex
	gone     error         // why the node is not ours any more, or nil
	asked    bool          // for the hold, by a revocation
	revoked  chan struct{} // closed when asked
	parts    []*Claim      // what was made for it; see [Hold.Attach]
	holds    []*Hold       // granted and not ended; the last one's Release deletes the node
	removal  *removal      // once somebody wants the node deleted
	deleting chan struct{} // while a transaction that deletes the node is under way; closed at its end
	lazy     *time.Timer   // sets the own watch of a claim that lasts
}

// Join makes a claim's node and its directory. When the connection fails
// before the reply comes, it finds out whether the node exists, by its GUID
// and after a write that the ensemble agreed on. When ctx ends first, Join
// returns at once, and the node, should it come to be, is deleted in the
// background. Two requests, create and list, which travel together: one round
// trip.
func (c *Client) Join(ctx context.Context, spec Spec) (*Claim, error) {
	shape, err := spec.shape(c)
	return c.joined(ctx, shape, err, spec.Line.Dir)
}

// JoinName is [Client.Join] for a claim of a name: one request. It fails with
// [ErrNodeExists] when the name is taken.
func (c *Client) JoinName(ctx context.Context, spec NameSpec) (*Claim, error) {
	shape, err := spec.shape(c)
	return c.joined(ctx, shape, err, spec.Path)
}

func (c *Client) joined(ctx context.Context, shape *shape, err error, path string) (*Claim, error) {
	var cl *Claim
	if err == nil {
		cl, err = c.join(ctx, shape)
	}
	if err != nil {
		return nil, c.Failure("join", path, err)
	}
	return cl, nil
}

// join returns the claim also when it fails, once a node may have been made.
func (c *Client) join(ctx context.Context, shape *shape) (*Claim, error) {
	s, err := c.sessionFor(ctx, shape)
	if err != nil {
		return nil, err
	}
	cl := c.newClaim(s, shape)
	if err := cl.describe(); err != nil {
		return nil, err
	}
	c.register(cl)
	made, sent := make(chan error, 1), make(chan struct{})
	if err := s.Go(func() { made <- cl.create(ctx, sent) }); err != nil {
		c.unregister(cl)
		return nil, err
	}
	if err := cl.awaitCreate(ctx, made, sent); err != nil {
		return cl, err
	}
	cl.watchOwnSoon()
	if shape.part != nil {
		return cl, cl.attach()
	}
	cl.emit(ClaimJoined, cl.joined, nil)
	return cl, nil
}

func (c *Client) newClaim(s *session.Session, shape *shape) *Claim {
	return &Claim{
		client: c, sess: s, shape: shape,
		joined: time.Now(), wake: make(chan struct{}, 1), revoked: make(chan struct{}),
	}
}

// describe says what the claim's node is to be like.
func (cl *Claim) describe() error {
	c, s := cl.client, cl.shape
	node := znode.Spec{Dir: c.full(s.Line.Dir), Name: s.name, Data: s.Data, Plain: true}
	switch {
	case s.name == "":
		node.Name, node.Plain = c.opts.dialect.prefix(c.opts.dialect.newGUID(), s.Kind), false
	case s.part != nil:
		node.Barred = s.part.Err
	case s.isShared():
		node.Shared = true
		if len(s.proof) > 0 {
			proof, err := c.requests(s.proof)
			if err != nil {
				return err
			}
			node.Proof = proof
		}
	}
	cl.node.Init(&c.nodes, cl.sess, node, (*owner)(cl))
	return nil
}

// awaitCreate lists the directory behind the create, and waits for both. A
// listing that fails is made again where it is needed.
func (cl *Claim) awaitCreate(ctx context.Context, made <-chan error, sent <-chan struct{}) error {
	select {
	case <-sent:
		if !cl.shape.Unlisted {
			cl.view, _ = cl.sess.List(ctx, cl.node.Spec.Dir)
		}
	case err := <-made:
		return cl.created(err)
	case <-ctx.Done():
	}
	select {
	case err := <-made:
		return cl.created(err)
	case <-ctx.Done():
		cl.abandon(made)
		return Ended(ctx)
	}
}

func (cl *Claim) created(err error) error {
	if err != nil {
		cl.client.unregister(cl)
	}
	return err
}

func notAlphanumeric(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// abandon sees to it that a create nobody waits for leaves no node.
func (cl *Claim) abandon(made <-chan error) {
	finish := func() {
		if err := <-made; err != nil {
			cl.client.unregister(cl)
			return
		}
		cl.leave()
	}
	if cl.sess.Go(finish) != nil {
		cl.client.unregister(cl) // the session took the node with it
	}
}

// create makes the node and blocks until that is certain, or certain not to
// be. It starts no further attempt when ctx has ended. It closes sent when the
// first one was sent.
func (cl *Claim) create(ctx context.Context, sent chan struct{}) error {
	tell := sync.OnceFunc(func() { close(sent) })
	ensure := func() error {
		return cl.sess.EnsurePath(ctx, cl.node.Spec.Dir, cl.client.opts.acl)
	}
	if cl.shape.isShared() {
		ensure = nil
	}
	return cl.node.Create(ctx, func() (string, int64, error) { return cl.attempt(tell) }, ensure)
}

// attempt sends the create once.
func (cl *Claim) attempt(sent func()) (made string, czxid int64, err error) {
	c, shape, flags := cl.client, cl.shape, int32(session.EphemeralSequential)
	if shape.name != "" {
		flags = session.Ephemeral
	}
	path := znode.Join(cl.node.Spec.Dir, cl.node.Spec.Name)
	if shape.part != nil {
		// Ends with the session.
		_, err := shape.part.Txn(context.Background(), CreateOp(c.relative(path), shape.Data, Mode(flags)))
		return path, 0, err
	}
	if !shape.isShared() {
		return cl.sess.Create(path, shape.Data, flags, c.opts.acl, sent)
	}
	node := c.relative(path)
	ops := append([]Op{CreateOp(node, shape.Data, Mode(flags)), SetOp(node, shape.Data, 0)}, shape.with...)
	results, err := c.txn(context.Background(), cl.sess, ops) // ends with the session
	if err != nil {
		return "", 0, callersOwn(err, 2)
	}
	return c.full(results[0].Path), results[1].Stat.Czxid, nil
}

// Node returns the path of the claim's node.
func (cl *Claim) Node() string { return cl.client.relative(cl.node.Path()) }

// name returns the name of the claim's node in its directory.
func (cl *Claim) name() string { return cl.node.Name() }

// own reads the claim's place from its node's name. A sequence number that
// cannot be read is past the end of the counter.
func (cl *Claim) own() Contender {
	self, ok := parseOf(cl.name(), cl.shape.Line.Kinds)
	if !ok {
		return Contender{Name: cl.name(), Sequence: -1}
	}
	return self
}

// Listed returns the names in the claim's directory as they were listed along
// with its create, or lists them now if that listing did not succeed: no
// request, or one. The list is no older than the create, so that a
// contender that is missing in it came later or is gone. It fails with [ErrNodeDeleted] when the
// claim's own node is gone, or with [ErrReleased] when the claim was left.
func (cl *Claim) Listed(ctx context.Context) ([]string, error) {
	err := cl.list(ctx, func(names *session.Listing) bool { return slices.Contains(names.Names, cl.name()) })
	if err != nil {
		return nil, cl.client.Failure("list", cl.shape.Line.Dir, err)
	}
	return slices.Clone(cl.view.Names), nil
}
