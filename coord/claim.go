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

// Spec says what a claim's node is like.
type Spec struct {
	Line Line
	Kind string
	// Name makes the node a plain ephemeral of exactly this name, which stands
	// in no line; Kind is then not used. [ErrNodeExists] when it is taken. Unless
	// With is used, nobody else must want the same name: a delete that is
	// repeated after a lost reply would delete their node.
	Name string
	// Data of the node; by default the client's identity. With Name it must be
	// unique if two claims of one client may want the same name.
	Data []byte
	// With are operations that take effect along with the create of the node, or
	// not at all. With them there must be a Name, the directory must exist, and
	// others may want the same Name. So that the node is told from one of theirs, its version is 1,
	// where a node just created has 0.
	With []Op
	// Proof are checks that hold as long as the claim is this one's and no other
	// of the same Name: its node is deleted only while they do, or when a node
	// that they check is gone, without which nobody makes such a claim.
	Proof []Op
	// For makes the node a part of a hold, in its session: it is made only while
	// the hold's node exists, a request to give it up is one for the hold, and it
	// is deleted with the hold, however that ends. There must be a Name that
	// nobody else wants, and no With.
	For *Hold
	// Exclusive: at most one claim of this line holds at a time, so that its
	// hold has a token.
	Exclusive bool
	// Reentrant: inside of a hold of the same line (see [HeldIn]) that covers
	// it, the claim is another handle of that hold, released on its own, without a
	// request.
	Reentrant bool
	// Unlisted is for claims that stand in a line, in the order of their
	// arrival, but wait for something else than their turn in it: Join does not
	// list the directory, and Turn grants at once, without asking the rule. The
	// members of a large group are made so, each of which would list all others.
	Unlisted bool
}

// waits tells whether the claim's turn depends on the line.
func (s *Spec) waits() bool { return s.Name == "" && !s.Unlisted }

// Claim is an own ephemeral node and what it stands for. It belongs to the
// session in which it was made, and to nobody else: its name carries a GUID.
type Claim struct {
	client *Client
	sess   *session.Session
	spec   Spec
	node   znode.Node
	joined time.Time
	view   *session.Listing // the directory as listed along with the create, or nil
	wake   chan struct{}    // something happened to the node or its session

	mu       sync.Mutex
	gone     error         // why the node is not ours any more, or nil
	asked    bool          // for the hold, by a revocation
	revoked  chan struct{} // closed when asked
	parts    []*Claim      // what was made for it; see [Spec.For]
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
	cl, err := c.join(ctx, spec)
	if err != nil {
		return nil, c.Failure("join", spec.Line.Dir, err)
	}
	return cl, nil
}

// join returns the claim also when it fails, once a node may have been made.
func (c *Client) join(ctx context.Context, spec Spec) (*Claim, error) {
	if err := c.checkSpec(&spec); err != nil {
		return nil, err
	}
	s, err := c.sessionFor(ctx, &spec)
	if err != nil {
		return nil, err
	}
	cl := c.newClaim(s, spec)
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
	if spec.For != nil {
		return cl, cl.attach()
	}
	cl.emit(ClaimJoined, cl.joined, nil)
	return cl, nil
}

func (c *Client) newClaim(s *session.Session, spec Spec) *Claim {
	return &Claim{
		client: c, sess: s, spec: spec,
		joined: time.Now(), wake: make(chan struct{}, 1), revoked: make(chan struct{}),
	}
}

// describe says what the claim's node is to be like.
func (cl *Claim) describe() error {
	c, spec := cl.client, &cl.spec
	node := znode.Spec{Dir: c.full(spec.Line.Dir), Name: spec.Name, Data: spec.Data, Plain: true}
	switch {
	case spec.Name == "":
		node.Name, node.Plain = c.opts.dialect.prefix(c.opts.dialect.newGUID(), spec.Kind), false
	case spec.For != nil:
		node.Barred = spec.For.Err
	case len(spec.With) > 0:
		node.Shared = true
		if len(spec.Proof) > 0 {
			proof, err := c.requests(spec.Proof)
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
		if cl.spec.waits() {
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

func (c *Client) checkSpec(spec *Spec) error {
	if err := checkPath(spec.Line.Dir); err != nil {
		return err
	}
	if spec.Name != "" {
		if err := checkName(spec.Name); err != nil {
			return err
		}
	} else if spec.Kind == "" || strings.ContainsFunc(spec.Kind, notAlphanumeric) {
		return invalid("kind %q: letters and digits only", spec.Kind)
	}
	if len(spec.With) > 0 && spec.Name == "" {
		return invalid("a claim with operations needs a name: its node must be known beforehand")
	}
	if spec.For != nil && (spec.Name == "" || len(spec.With) > 0) {
		return invalid("a part of a hold needs a name of its own, and has no operations beside it")
	}
	if spec.Data == nil {
		spec.Data = []byte(c.opts.owner())
	}
	if spec.Name == "" && !slices.Contains(spec.Line.Kinds, spec.Kind) {
		spec.Line.Kinds = append(slices.Clone(spec.Line.Kinds), spec.Kind)
	}
	return nil
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
	if len(cl.spec.With) > 0 {
		ensure = nil
	}
	return cl.node.Create(ctx, func() (string, int64, error) { return cl.attempt(tell) }, ensure)
}

// attempt sends the create once.
func (cl *Claim) attempt(sent func()) (made string, czxid int64, err error) {
	c, flags := cl.client, int32(session.EphemeralSequential)
	if cl.spec.Name != "" {
		flags = session.Ephemeral
	}
	path := znode.Join(cl.node.Spec.Dir, cl.node.Spec.Name)
	if cl.spec.For != nil {
		// Ends with the session.
		_, err := cl.spec.For.Txn(context.Background(), CreateOp(c.relative(path), cl.spec.Data, Mode(flags)))
		return path, 0, err
	}
	if len(cl.spec.With) == 0 {
		return cl.sess.Create(path, cl.spec.Data, flags, c.opts.acl, sent)
	}
	node := c.relative(path)
	ops := append([]Op{CreateOp(node, cl.spec.Data, Mode(flags)), SetOp(node, cl.spec.Data, 0)}, cl.spec.With...)
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
	self, ok := parseName(cl.name(), cl.spec.Line.Kinds)
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
	if cl.view == nil || !slices.Contains(cl.view.Names, cl.name()) {
		names, err := cl.list(ctx)
		if err != nil {
			return nil, cl.client.Failure("list", cl.spec.Line.Dir, err)
		}
		if names == nil || !slices.Contains(names.Names, cl.name()) {
			return nil, opError("list", cl.spec.Line.Dir, cl.missed())
		}
		cl.node.Seen()
		cl.view = names
	}
	return slices.Clone(cl.view.Names), nil
}
