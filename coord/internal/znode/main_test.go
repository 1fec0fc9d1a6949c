package znode_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/internal/servers"
	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestMain(m *testing.M) { zktest.Main(m) }

const T = coordtest.T

var anyone = zk.WorldACL(zk.PermAll)

// scene is a session, and what its host tells of its nodes.
type scene struct {
	coordtest.Bubble
	*session.Session
	host znode.Host
	told chan znode.Event

	mu    sync.Mutex
	nodes []*znode.Node
}

func inBubble(t *testing.T, f func(s *scene)) {
	t.Helper()
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		s := &scene{Bubble: b, told: make(chan znode.Event, 1000)}
		s.host.Tell = func(e znode.Event, _ *znode.Node, _ error) { s.told <- e }
		s.host.IsRequest = func(data []byte) bool { return string(data) == "give it up" }
		s.host.Others = func(*session.Session) []*znode.Node {
			s.mu.Lock()
			defer s.mu.Unlock()
			return slices.Clone(s.nodes)
		}
		keeper, err := session.NewKeeper(session.Config{
			Config:  servers.Config{Servers: []string{b.Server.Addr()}, Dial: b.Server.DialContext},
			Timeout: T, MaxPacket: wire.DefaultMaxPacket, Log: slog.New(slog.DiscardHandler),
			Notify: func(change session.Change, of *session.Session) {
				switch change {
				case session.Up:
					s.host.Connected(of)
				case session.Over:
					s.host.Over(of)
				}
			},
		})
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, keeper.Close(context.Background())) })
		s.Session, err = keeper.Session(b.Context())
		require.NoError(b, err)
		require.NoError(b, s.EnsurePath(b.Context(), "/d", anyone))
		f(s)
	})
}

// nodes are one of each kind, by what identifies them.
var nodes = map[string]func() *znode.Node{
	"GUID": func() *znode.Node {
		return &znode.Node{Dir: "/d", Stem: "_c_4f1d5b2c-0000-8000-8000-000000000000-lock-"}
	},
	"owner": func() *znode.Node { return &znode.Node{Dir: "/d", Stem: "n_", Nameless: true} },
	"name and data": func() *znode.Node {
		return &znode.Node{Dir: "/d", Stem: "one", Plain: &znode.Plain{Data: []byte("mine")}}
	},
}

// each runs a test with a node of each kind.
func each(t *testing.T, f func(s *scene, n *znode.Node)) {
	t.Helper()
	for by, make := range nodes {
		t.Run("known by its "+by, func(t *testing.T) {
			inBubble(t, func(s *scene) { f(s, make()) })
		})
	}
}

// create makes the node.
func (s *scene) create(ctx context.Context, n *znode.Node) error {
	n.Init(&s.host, s.Session, nil)
	if err := n.AwaitTurn(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	s.nodes = append(s.nodes, n)
	s.mu.Unlock()
	flags, data := int32(zk.FlagEphemeralSequential), []byte(nil)
	if n.Plain != nil {
		flags, data = zk.FlagEphemeral, n.Plain.Data
	}
	return znode.Create(ctx, func() error {
		path, czxid, err := s.Create(znode.Join(n.Dir, n.Stem), data, flags, anyone)
		if err == nil {
			n.Made(path, czxid)
		}
		return err
	}, nil, n)
}

// givenUp creates the node so that the create is carried out late, after its
// caller has given up.
func (s *scene) givenUp(n *znode.Node, late time.Duration) {
	s.Helper()
	fault := s.creates(1, zkembed.CarryOutLate(late))
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	go func() {
		<-fault.Struck()
		cancel()
	}()
	require.ErrorIs(s, s.create(ctx, n), context.Canceled)
	require.Equal(s, 1, fault.Fired())
}

// creates injects a fault into so many creates of the session; 0 means all.
func (s *scene) creates(times int, a zkembed.Action) *zkembed.Fault {
	return s.Server.Inject(
		zkembed.Match{Session: s.ID(), Ops: []zkembed.Op{zkembed.OpCreate, zkembed.OpCreate2}, Times: times}, a)
}

// there lists the session's nodes.
func (s *scene) there() (paths []string) {
	for _, n := range s.Server.Nodes() {
		if n.Stat.EphemeralOwner == s.ID() {
			paths = append(paths, n.Path)
		}
	}
	return paths
}

// counts returns how often the host was told of an event.
func (s *scene) counts(of znode.Event) (n int) {
	for range len(s.told) {
		e := <-s.told
		if e == of {
			n++
		}
		s.told <- e
	}
	return n
}
