package witness_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/internal/servers"
	"github.com/zkcoord/zkcoord/coord/internal/session"
	"github.com/zkcoord/zkcoord/coord/internal/wire"
	"github.com/zkcoord/zkcoord/coord/internal/witness"
	"github.com/zkcoord/zkcoord/coord/internal/znode"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/zktest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func TestMain(m *testing.M) { zktest.Main(m) }

const T = coordtest.T

var anyone = zk.WorldACL(zk.PermAll)

// scene is a client's witnesses, and its sessions.
type scene struct {
	coordtest.Bubble
	pool   *witness.Pool
	keeper *session.Keeper
}

func inBubble(t *testing.T, f func(s *scene)) {
	t.Helper()
	coordtest.InBubble(t, func(b coordtest.Bubble) {
		host := &znode.Host{
			Tell:   func(znode.Event, *znode.Node, error) {},
			Others: func(*session.Session) []*znode.Node { return nil },
		}
		keeper, err := session.NewKeeper(session.Config{
			Config:  servers.Config{Servers: []string{b.Server.Addr()}, Dial: b.Server.DialContext},
			Timeout: T, MaxPacket: wire.DefaultMaxPacket, Log: slog.New(slog.DiscardHandler),
			Notify: func(change session.Change, of *session.Session) {
				switch change {
				case session.Up:
					host.Connected(of)
				case session.Over:
					host.Over(of)
				}
			},
		})
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, keeper.Close(context.Background())) })
		var made atomic.Int64
		s := &scene{b, witness.New(witness.Config{
			Host: host, Keeper: keeper, Data: []byte("whose it is"), ACL: anyone,
			Name: func() string { return fmt.Sprint("_c_", made.Add(1)) },
		}), keeper}
		require.NoError(b, b.Open().EnsureDir(b.Context(), "/count"))
		f(s)
	})
}

// add is an operation that would be seen if it was carried out twice.
var add = wire.Op{Kind: wire.OpCreate, Path: "/count/n-", Flags: zk.FlagSequence, ACL: anyone}

// impossible is one that is refused as long as /missing is missing.
var impossible = wire.Op{Kind: wire.OpCreate, Path: "/missing/n", ACL: anyone}

func (s *scene) txn(ctx context.Context, ops ...wire.Op) error {
	return coordtest.Err(s.pool.Txn(ctx, "/once", nil, ops))
}

// strike makes a fault meet so many transactions of one operation.
func (s *scene) strike(a zkembed.Action, times int) *zkembed.Fault {
	return s.Server.Inject(zkembed.Match{
		Ops: []zkembed.Op{zkembed.OpMulti}, Times: times,
		Func: func(r zkembed.Request) bool {
			return len(r.Parts) == 2
		},
	}, a)
}

func (s *scene) children(dir string) (all []zkembed.Node) {
	for _, node := range s.Server.Nodes() {
		if strings.HasPrefix(node.Path, dir+"/") {
			all = append(all, node)
		}
	}
	return all
}

// added counts how often the operation was carried out.
func (s *scene) added() int { return len(s.children("/count")) }

// witness returns the one that there is.
func (s *scene) witness() zkembed.Node {
	s.Helper()
	all := s.children("/once")
	require.Len(s, all, 1)
	return all[0]
}

// asked counts the requests of the session during f.
func (s *scene) asked(f func()) int {
	id := s.keeper.Current().ID()
	before := s.Server.SessionCounts(id)
	f()
	counts := s.Server.SessionCounts(id).Since(before)
	delete(counts, zkembed.OpPing)
	return counts.Total()
}

func TestATransactionWhoseReplyIsLostIsNotCarriedOutTwice(t *testing.T) {
	for _, fault := range []zkembed.Action{zkembed.LoseReply(), zkembed.Drop()} {
		inBubble(t, func(s *scene) {
			for times := range 4 {
				f := s.strike(fault, times)
				if times == 0 {
					f.Remove()
				}
				results, err := s.pool.Txn(s.Context(), "/once", nil, []wire.Op{add})
				require.NoError(s, err)
				require.Equal(s, times+1, s.added())
				if results != nil {
					require.Equal(s, fmt.Sprintf("/count/n-%010d", times), results[0].Path)
				}
				f.Remove()
			}
			s.witness()
		})
	}
}

// Until its first transaction a witness says whose it is, then nothing.
func TestAWitnessCountsTheTransactionsThatUsedIt(t *testing.T) {
	inBubble(t, func(s *scene) {
		late := s.strike(zkembed.Delay(time.Second), 1)
		done := coordtest.Go(func() error { return s.txn(s.Context(), add) })
		<-late.Struck()
		require.Equal(s, "whose it is", string(s.witness().Data))
		require.NoError(s, <-done)
		require.NoError(s, s.txn(s.Context(), add))
		require.ErrorIs(s, s.txn(s.Context(), impossible), zk.ErrNoNode)
		require.EqualValues(s, 2, s.witness().Stat.Version)
		require.Empty(s, s.witness().Data)
	})
}

func TestTransactionsAtTheSameTimeShareAtMostThirtyTwoWitnesses(t *testing.T) {
	inBubble(t, func(s *scene) {
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() { require.NoError(s, s.txn(s.Context(), add)) })
		}
		all.Wait()
		require.Equal(s, 200, s.added())
		require.LessOrEqual(s, len(s.children("/once")), 32)
	})
}

func TestAWitnessIsUsedAgainAndIdleForTheSessionTimeoutItIsDeleted(t *testing.T) {
	inBubble(t, func(s *scene) {
		require.NoError(s, s.txn(s.Context(), add))
		for range 3 {
			require.Equal(s, 1, s.asked(func() {
				time.Sleep(T * 9 / 10)
				require.NoError(s, s.txn(s.Context(), add))
			}), "nor is it probed for")
		}
		s.witness()
		require.Equal(s, 1, s.asked(func() { time.Sleep(10 * T) }))
		require.Empty(s, s.children("/once"))
		require.NoError(s, s.txn(s.Context(), add))
	})
}

func TestAWitnessDeletedByHandOrEndedWithItsSessionIsReplaced(t *testing.T) {
	inBubble(t, func(s *scene) {
		admin := s.Open()
		require.NoError(s, s.txn(s.Context(), add))
		require.NoError(s, admin.Delete(s.Context(), s.witness().Path, -1))
		require.NoError(s, s.txn(s.Context(), add))
		require.NoError(s, coordtest.Err(admin.Set(s.Context(), s.witness().Path, nil, -1)))
		require.NoError(s, s.txn(s.Context(), add), "another client wrote the witness")
		former := s.keeper.Current()
		require.NoError(s, s.Server.ExpireSession(former.ID()))
		<-former.Done()
		require.NoError(s, s.txn(s.Context(), add))
		require.Equal(s, 4, s.added())
	})
}

func TestATransactionLeftInItsMiddleIsUnconfirmedAndLeavesNoWitness(t *testing.T) {
	inBubble(t, func(s *scene) {
		f := s.strike(zkembed.DelayReply(time.Second), 1)
		err := s.txn(s.Within(500*time.Millisecond), add)
		require.ErrorIs(s, err, znode.ErrUnconfirmed)
		require.ErrorIs(s, err, context.DeadlineExceeded)
		require.Equal(s, 1, f.Fired())
		time.Sleep(2 * time.Second)
		require.Equal(s, 1, s.added())
		require.Empty(s, s.children("/once"))
	})
}

func TestATransactionGivenUpWhileItsWitnessIsMadeLeavesNoWitness(t *testing.T) {
	inBubble(t, func(s *scene) {
		for range 500 {
			ctx, cancel := context.WithCancel(s.Context())
			go cancel() // before, while, or after the create is sent
			require.Error(s, s.txn(ctx, impossible))
		}
		time.Sleep(2 * T)
		require.Empty(s, s.children("/once"))
	})
}

func TestATransactionWhoseSessionEndsBeforeTheReplyIsUnconfirmed(t *testing.T) {
	inBubble(t, func(s *scene) {
		require.NoError(s, s.txn(s.Context(), add))
		f, former := s.strike(zkembed.LoseReply(), 1), s.keeper.Current()
		go func() {
			<-f.Struck()
			require.NoError(s, s.Server.ExpireSession(former.ID()))
		}()
		err := s.txn(s.Context(), add)
		require.ErrorIs(s, err, znode.ErrUnconfirmed)
		require.ErrorIs(s, err, wire.ErrExpired)
		require.NoError(s, s.txn(s.Context(), add))
		require.Equal(s, 3, s.added())
	})
}

// The transaction was carried out, its reply was lost, and nobody can know any
// more: a caller that took the missing witness for a failure would repeat the
// transaction.
func TestATransactionWhoseWitnessIsDeletedBeforeItsRepeatIsUnconfirmed(t *testing.T) {
	inBubble(t, func(s *scene) {
		admin := s.Open()
		lost := s.strike(zkembed.LoseReply(), 1)
		repeat := s.strike(zkembed.Delay(time.Second), 1)
		done := coordtest.Go(func() error { return s.txn(s.Context(), add) })
		<-repeat.Struck()
		require.Equal(s, 1, lost.Fired())
		require.NoError(s, admin.Delete(s.Context(), s.witness().Path, -1))
		require.ErrorIs(s, <-done, znode.ErrUnconfirmed)
		require.Equal(s, 1, s.added())
	})
}

func TestATransactionThatWasRefusedIsNotCarriedOutLate(t *testing.T) {
	inBubble(t, func(s *scene) {
		require.NoError(s, s.txn(s.Context(), add)) // makes the witness
		late := s.strike(zkembed.CarryOutLate(T/4), 1)
		err := s.txn(s.Context(), impossible)
		require.ErrorIs(s, err, zk.ErrNoNode)
		require.NotErrorIs(s, err, znode.ErrUnconfirmed)
		require.Equal(s, 1, late.Fired())
		require.NoError(s, s.Open().EnsureDir(s.Context(), "/missing"))
		time.Sleep(T)
		require.Empty(s, s.children("/missing"))
	})
}

func TestARefusalIsReturnedAlsoWhenTheReplyToItsFenceIsLost(t *testing.T) {
	for _, fault := range []zkembed.Action{
		zkembed.LoseReply(), zkembed.Drop(), zkembed.ReplyError(zkembed.CodeThrottledOp),
	} {
		inBubble(t, func(s *scene) {
			require.NoError(s, s.txn(s.Context(), add))
			s.strike(zkembed.Drop(), 1)
			fence := s.Server.Inject(zkembed.Match{Times: 1, Func: func(r zkembed.Request) bool {
				return len(r.Parts) == 1 && r.Parts[0] == zkembed.OpSetData
			}}, fault)
			err := s.txn(s.Context(), impossible)
			require.Equal(s, 1, fence.Fired())
			require.ErrorIs(s, err, zk.ErrNoNode)
			require.NotErrorIs(s, err, znode.ErrUnconfirmed)
			require.Equal(s, "refused", string(s.witness().Data))
			require.NoError(s, s.txn(s.Context(), add), "the witness is as good as before")
			require.Equal(s, 2, s.added())
		})
	}
}
