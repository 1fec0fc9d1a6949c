package coord_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// threeNames are claims of three names, each made along with a change of its
// proof.
func threeNames(b bubble, c *coord.Client) []coord.NameSpec {
	b.Helper()
	require.NoError(b, c.EnsureDir(b.Context(), "/names"))
	require.NoError(b, c.EnsureDir(b.Context(), "/proofs"))
	var specs []coord.NameSpec
	for i := range 3 {
		proof := fmt.Sprint("/proofs/", i)
		require.NoError(b, c.Create(b.Context(), proof, nil))
		specs = append(specs, coord.NameSpec{
			Path: fmt.Sprint("/names/", i), Data: fmt.Append(nil, "mine ", i),
			With: []coord.Op{coord.SetOp(proof, nil, 0)}, Proof: []coord.Op{coord.CheckOp(proof, 1)},
		})
	}
	return specs
}

// namesOf claims the names.
func (b bubble) namesOf(c *coord.Client, specs []coord.NameSpec) *hold.Set {
	b.Helper()
	holds, err := recipe.AcquireNames(b.Context(), c, specs...)
	require.NoError(b, err)
	return hold.NewSet(holds[0], holds[1:]...)
}

// strikeNames lets a fault strike the transaction of several names.
func (b bubble) strikeNames(fault zkembed.Action) *zkembed.Fault {
	return b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, Times: 1, Func: func(r zkembed.Request) bool {
		return len(r.Parts) >= 6
	}}, fault)
}

// deletions remove the proofs, as the last thing that the holds are for.
var deletions = []coord.Op{
	coord.DeleteOp("/proofs/0", 1), coord.DeleteOp("/proofs/1", 1), coord.DeleteOp("/proofs/2", 1),
}

func (b bubble) claimsAndProofs() int { return b.children("/names") + b.children("/proofs") }

func TestNamesAreClaimedTogetherOrNotAtAll(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, other := b.Open(), b.Open()
		specs := threeNames(b, c)
		require.NoError(b, other.Create(b.Context(), "/names/1", nil))
		_, err := recipe.AcquireNames(b.Context(), c, specs...)
		var refused *coord.TxnError
		require.ErrorAs(b, err, &refused)
		require.Equal(b, 3, refused.Index, "the first operation of the second name")
		require.ErrorIs(b, err, coord.ErrNodeExists)
		require.Zero(b, b.owned(c.Info().SessionID))

		require.NoError(b, other.Delete(b.Context(), "/names/1", -1))
		g := b.namesOf(c, specs)
		require.Equal(b, 3, b.owned(c.Info().SessionID))
		require.NoError(b, b.once(c).Release(b.Context(), g.Holds(), deletions...))
		require.ErrorIs(b, g.Err(), coord.ErrReleased)
		require.Zero(b, b.claimsAndProofs())
	})
}

func TestClaimsOfSeveralNamesAndTheirReleaseSurviveALostReply(t *testing.T) {
	for _, fault := range []zkembed.Action{zkembed.LoseReply(), zkembed.Drop()} {
		inBubble(t, func(b bubble) {
			c := b.Open()
			specs := threeNames(b, c)
			f := b.strikeNames(fault)
			g := b.namesOf(c, specs)
			require.Equal(b, 3, b.owned(c.Info().SessionID))
			time.Sleep(10 * T) // what comes late, and our watches
			require.NoError(b, g.Err())
			require.Equal(b, 1, f.Fired())
			f = b.strikeNames(fault)
			require.NoError(b, b.once(c).Release(b.Context(), g.Holds(), deletions...))
			require.Equal(b, 1, f.Fired())
			require.Zero(b, b.claimsAndProofs())
		})
	}
}

// The first node is gone when the client looks for the outcome of its
// transaction. The other nodes prove that it was carried out.
func TestClaimsOfSeveralNamesAreFoundByAnyOfThem(t *testing.T) {
	inBubble(t, func(b bubble) {
		var away atomic.Bool
		c, admin := b.Open(b.leaving(&away)), b.Open()
		specs := threeNames(b, c)
		b.strikeNames(zkembed.LoseReply())
		away.Store(true)
		acquired := coordtest.Begin(b.Context(), func(ctx context.Context) ([]*coord.Hold, error) {
			return recipe.AcquireNames(ctx, c, specs...)
		})
		synctest.Wait()
		require.NoError(b, inspect.Break(b.Context(), admin, "/names/0"))
		away.Store(false)
		holds := coordtest.Had(b, acquired)
		require.Len(b, holds, len(specs))
		time.Sleep(time.Second) // until our watches are set
		require.ErrorIs(b, holds[0].Err(), coord.ErrNodeDeleted)
		for _, h := range holds[1:] {
			require.NoError(b, h.Err())
			require.NoError(b, h.Release(b.Context()))
		}
		require.Zero(b, b.children("/names"))
	})
}

// atTheFirst has a call that acquires stand still while f runs, at the first
// event of a kind.
func atTheFirst(kind string, f func()) coord.Option {
	var first sync.Once
	return coord.WithObserver(func(e event.Event) {
		if e.Kind == kind {
			first.Do(f)
		}
	})
}

// Replies are so slow that little of the window is ever left, and none comes
// from the first grant on until the window is over.
func TestOfSeveralNamesNoneIsLostBeforeTheOthersAreGranted(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open(atTheFirst(event.Granted, func() {
			b.Server.Stop()
			time.AfterFunc(T*9/10, b.Server.Resume)
		}))
		specs := threeNames(b, c)
		time.Sleep(T) // without a probe
		b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti}},
			zkembed.DelayReply(T/6))
		holds := b.namesOf(c, specs).Holds()
		for _, h := range holds {
			require.NoError(b, h.Err())
		}
		time.Sleep(T * 4 / 5)
		for _, h := range holds {
			require.ErrorIs(b, h.Err(), coord.ErrWindowOver, "no server answered for so long")
		}
		time.Sleep(T)
	})
}

func TestWhenTheWindowEndsWhileSeveralNamesAreGrantedNoneIs(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open(atTheFirst(event.Granted, func() {
			b.Server.Stop()
			time.Sleep(T * 97 / 100)
			b.Server.Resume()
		}))
		specs, session := threeNames(b, c), c.Info().SessionID
		_, err := recipe.AcquireNames(b.Context(), c, specs...)
		require.ErrorIs(b, err, coord.ErrLost)
		require.ErrorIs(b, err, coord.ErrWindowOver)
		time.Sleep(T)
		require.Equal(b, session, c.Info().SessionID, "the session survived")
		require.Zero(b, b.children("/names"))
	})
}

func TestClaimsOfSeveralNamesThatAreGivenUpLeaveNoNode(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		specs := threeNames(b, c)
		b.Server.Inject(zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti}, Times: 1},
			zkembed.DelayReply(T/4))
		require.ErrorIs(b, coordtest.Err(recipe.AcquireNames(b.Within(T/8), c, specs...)), context.DeadlineExceeded)
		time.Sleep(T)
		require.Zero(b, b.owned(c.Info().SessionID))
	})
}

func TestAReleaseOfAGroupWithAnOperationIsCarriedOutForAllOrForNone(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(), b.Open()
		g := b.namesOf(c, threeNames(b, c))
		b.Server.Inject(zkembed.Match{Session: c.Info().SessionID}, zkembed.DelayEvents(T/4))
		require.NoError(b, inspect.Break(b.Context(), admin, "/names/1"))
		require.ErrorIs(b, b.once(c).Release(b.Context(), g.Holds(), deletions...), coord.ErrLost)
		require.Equal(b, 5, b.claimsAndProofs(), "all proofs, and two claims")
		for i, h := range g.Holds() {
			require.Equal(b, i != 1, h.Err() == nil, i)
		}

		foreign := b.Hold(recipe.AcquireName(b.Context(), admin, coord.NameSpec{Path: "/names/foreign"}))
		mixed := hold.NewSet(g.Holds()[0], foreign)
		require.ErrorIs(b, b.once(c).Release(b.Context(), mixed.Holds()), coord.ErrInvalid)
		require.NoError(b, mixed.Release(b.Context()))
		require.NoError(b, b.once(c).Release(b.Context(), g.Holds()[2:], deletions[2]))
	})
}

// named is a claim of a name that others want, too, and what proves it.
func (b bubble) named(c *coord.Client) *coord.Hold {
	b.Helper()
	require.NoError(b, c.EnsureDir(b.Context(), "/names"))
	require.NoError(b, c.Create(b.Context(), "/proof", nil))
	return b.Hold(recipe.AcquireName(b.Context(), c, coord.NameSpec{
		Path: "/names/one", Data: []byte("mine"),
		With:  []coord.Op{coord.SetOp("/proof", nil, 0)},
		Proof: []coord.Op{coord.CheckOp("/proof", 1)},
	}))
}

// The version distinguishes the two nodes, also where the data are the same.
func TestAReleaseLeavesTheNodeAloneThatIsAnothersByNow(t *testing.T) {
	anothers := coord.EphemeralOp("/names/one", []byte("mine"))
	for name, tt := range map[string]struct {
		claim func(b bubble, c *coord.Client) *coord.Hold
		next  []coord.Op
	}{
		"proven": {bubble.named, []coord.Op{anothers}},
		"without a proof": {
			func(b bubble, c *coord.Client) *coord.Hold { return b.taking(c, "mine") }, []coord.Op{anothers},
		},
		"made in the same way, with another proof": {
			bubble.named, []coord.Op{anothers, coord.SetOp("/names/one", nil, 0), coord.SetOp("/proof", nil, 1)},
		},
	} {
		runInBubble(t, name, func(b bubble) {
			c, other := b.Open(), b.Open()
			h := tt.claim(b, c)
			b.breakUnawares(h)
			require.NoError(b, coordtest.Err(other.Txn(b.Context(), tt.next...)))
			require.NoError(b, h.Err(), "it does not know")
			require.NoError(b, h.Release(b.Context()))
			require.Equal(b, 1, b.owned(other.Info().SessionID))
		})
	}
}

// The next claim is like the one before, its version, too.
func TestADeletionWhoseReplyIsLostIsNotRepeatedOnTheNextClaimOfTheName(t *testing.T) {
	inBubble(t, func(b bubble) {
		var away atomic.Bool
		c, other := b.Open(b.leaving(&away)), b.Open()
		spec := coord.NameSpec{Path: "/names/one", Data: []byte("the same")}
		h := b.Hold(recipe.AcquireName(b.Context(), c, spec))
		lost := b.Server.Inject(zkembed.Match{Session: h.Session(), Ops: []zkembed.Op{zkembed.OpDelete}, Times: 1},
			zkembed.LoseReply())
		away.Store(true)
		h.Abandon()
		synctest.Wait()
		require.Equal(t, 1, lost.Fired())
		next := b.Hold(recipe.AcquireName(b.Context(), other, spec))
		away.Store(false)
		require.NoError(t, h.Release(b.Context()))
		time.Sleep(time.Second)
		require.NoError(t, next.Err())
	})
}

func TestAClientThatMayNotWriteIntoItsNodesClaimsNames(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open(coord.WithACL("world:anyone:crd"))
		h := b.Hold(recipe.AcquireName(b.Context(), c, coord.NameSpec{Path: "/names/one", Exclusive: true}))
		require.Positive(t, h.Token())
		require.NoError(t, h.Release(b.Context()))
		require.Zero(t, b.owned(h.Session()))
	})
}

// The servers hear the client and keep its session, but it does not hear them.
func TestANameThatAFormerSessionOfTheSameClientHasIsWaitedFor(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, spec := b.Open(), coord.NameSpec{Path: "/names/one"}
		h := b.Hold(recipe.AcquireName(b.Context(), c, spec))
		// Only the new session comes through: it cannot close the former one.
		deaf := b.Server.Partition(zkembed.Cut{Direction: zkembed.ToClient, Sessions: []int64{h.Session()}})
		defer deaf.Heal()
		for id := h.Session(); id == h.Session() || id == 0; id = c.Info().SessionID {
			time.Sleep(time.Millisecond)
		}
		require.Contains(t, b.sessions(), h.Session(), "the server has ended it before")
		next := b.Hold(recipe.AcquireName(b.Context(), c, spec))
		require.NoError(t, next.Release(b.Context()))

		b.Hold(recipe.AcquireName(b.Context(), b.Open(), spec))
		require.ErrorIs(t, coordtest.Err(recipe.AcquireName(b.Context(), c, spec)), coord.ErrNodeExists)
		another := coord.NameSpec{Path: "/names/two", With: []coord.Op{coord.CreateOp("/names/one", nil)}}
		require.ErrorIs(t, coordtest.Err(recipe.AcquireName(b.Within(T), c, another)), coord.ErrNodeExists,
			"by its own operation")
	})
}

func TestAReleaseDeletesTheNodeAlsoWhenWhatProvedItIsGone(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		h := b.named(c)
		require.NoError(t, c.Delete(b.Context(), "/proof", -1))
		require.NoError(t, h.Release(b.Context()))
		require.Zero(t, b.owned(h.Session()))
	})
}

func TestAHoldWhoseNameIsAnothersWhenItsClientIsBackIsLost(t *testing.T) {
	inBubble(t, func(b bubble) {
		var away atomic.Bool
		c, admin := b.Open(b.leaving(&away)), b.Open()
		h := b.named(c)
		time.Sleep(time.Second) // until our watch is set
		away.Store(true)
		require.NoError(t, b.Server.DropConn(h.Session()))
		require.NoError(t, inspect.Break(b.Context(), admin, "/names/one"))
		require.NoError(t, coordtest.Err(admin.Txn(b.Context(), coord.EphemeralOp("/names/one", []byte("another's")))))
		time.Sleep(time.Second)
		require.NoError(t, h.Err(), "it does not know")
		away.Store(false)
		require.NoError(t, coordtest.Write(b.Context(), c))
		synctest.Wait()
		require.True(t, ended(h))
		require.ErrorIs(t, h.Err(), coord.ErrNodeDeleted)
	})
}

// Both claims are of one session.
func TestAHoldWhoseNameIsAnotherClaimsOfItsClientIsLost(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		h := b.taking(c, "mine")
		require.NoError(t, inspect.Break(b.Context(), b.Open(), "/names/one"))
		next := b.taking(c, "another's")
		time.Sleep(time.Second) // until our watches are set
		require.ErrorIs(t, h.Err(), coord.ErrNodeDeleted)
		require.NoError(t, h.Release(b.Context()))
		require.NoError(t, next.Err())
		require.True(t, b.exists("/names/one"))
	})
}

// With a part of the hold, a transaction deletes both nodes.
func TestAReleaseWithItsPartsLeavesTheNodeAloneThatIsAnothersByNow(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, other := b.Open(), b.Open()
		h := b.named(c)
		require.NoError(t, recipe.Attach(b.Context(), h, "/names/part", nil))
		b.breakUnawares(h)
		require.NoError(t, coordtest.Err(other.Txn(b.Context(),
			coord.EphemeralOp("/names/one", []byte("mine")), coord.SetOp("/names/one", nil, 0), coord.SetOp("/proof", nil, 1))))
		require.NoError(t, h.Release(b.Context()))
		require.Equal(t, 1, b.owned(other.Info().SessionID))
		require.False(t, b.exists("/names/part"))
	})
}

func TestOfTwoClaimsOfOneNameAtTheSameTimeTheOneThatHoldsHasItsToken(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(t, c.EnsureDir(b.Context(), "/names"))
		b.Server.Inject(zkembed.Match{Func: creates}, zkembed.DelayReply(time.Second))
		holds := make(chan *coord.Hold, 2)
		for _, data := range []string{"one", "other"} {
			go func() {
				h, err := recipe.AcquireName(b.Context(), c,
					coord.NameSpec{Path: "/names/name", Data: []byte(data), Exclusive: true})
				if err != nil {
					require.ErrorIs(t, err, coord.ErrNodeExists)
				}
				holds <- h
			}()
		}
		h := <-holds
		if other := <-holds; other != nil {
			require.Nil(t, h)
			h = other
		}
		require.Equal(t, b.node(h.Node()).Stat.Czxid, h.Token())
		require.NoError(t, h.Release(b.Context()))
	})
}

// A name that is broken by hand has a new owner before the former one hears.
func TestATransactionOfANameThatAnotherHasIsRefusedByItsProof(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, other := b.Open(), b.Open()
		h := b.named(c)
		b.breakUnawares(h)
		next := b.Hold(
			recipe.AcquireName(b.Context(), other,
				coord.NameSpec{Path: "/names/one", With: []coord.Op{coord.SetOp("/proof", nil, 1)}}))
		_, err := h.Txn(b.Context(), coord.CheckOp("/", -1))
		require.ErrorIs(b, err, coord.ErrLost)
		require.NoError(b, next.Err())
	})
}

func TestANameWhoseProofIsGoneIsReleasedAfterATransaction(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		h := b.named(c)
		require.NoError(b, b.Open().Delete(b.Context(), "/proof", -1))
		require.ErrorIs(b, coordtest.Err(h.Txn(b.Context(), coord.CheckOp("/", -1))), coord.ErrLost)
		require.NoError(b, h.Release(b.Context()))
		require.False(b, b.exists("/names/one"))
	})
}

func TestNamesWhoseSessionEndsBeforeTheReplyAreLeftAndCanBeClaimedAgain(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		specs, id := threeNames(b, c), c.Info().SessionID
		lost := b.strikeNames(zkembed.Drop())
		go func() {
			<-lost.Struck()
			require.NoError(b, b.Server.ExpireSession(id))
		}()
		_, err := recipe.AcquireNames(b.Context(), c, specs...)
		require.ErrorIs(b, err, coord.ErrSessionExpired)
		require.Zero(b, b.owned(id))
		require.NoError(b, b.namesOf(c, specs).Release(b.Context()))
	})
}

// taking returns a hold whose node's name others take in their turn.
func (b bubble) taking(c *coord.Client, who string) *coord.Hold {
	b.Helper()
	return b.Hold(recipe.AcquireName(b.Context(), c, coord.NameSpec{Path: "/names/one", Data: []byte(who)}))
}
