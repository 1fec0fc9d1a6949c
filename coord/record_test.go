package coord_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/hold"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

func increment(data []byte, _ coord.Stat) ([]byte, error) {
	n, _ := strconv.Atoi(string(data))
	return strconv.AppendInt(nil, int64(n+1), 10), nil
}

func TestChangesOfARecordByManyAtTheSameTimeAllCount(t *testing.T) {
	inBubble(t, func(b bubble) {
		var changing sync.WaitGroup
		for range 4 {
			c := b.Open()
			for range 5 {
				changing.Go(func() {
					if err := recipe.NewRecord(c, "/a/counter").Change(b.Context(), c.Txn, increment); err != nil {
						b.Error(err)
					}
				})
			}
		}
		changing.Wait()
		require.Equal(b, "20", b.data("/a/counter"))
	})
}

// A record that this process watches is not read again.
func TestAChangeOfAWatchedRecordIsOneRequest(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		record := recipe.NewRecord(c, "/r")
		require.NoError(b, record.Change(b.Context(), c.Txn, increment))
		require.NoError(b, c.Wait(b.Context(), func(v *coord.View) (bool, error) {
			_, _, err := record.Look(v, nil)
			return err == nil, err
		}))
		require.Equal(b, zkembed.Counts{zkembed.OpMulti: 1}, b.asked(c, func() {
			require.NoError(b,
				record.Change(b.Context(), c.Txn, func(data []byte, _ coord.Stat) ([]byte, error) { return data, nil }))
		}))
		require.Equal(b, zkembed.Counts{zkembed.OpMulti: 1, zkembed.OpNotify: 1}, b.asked(c, func() {
			require.NoError(b, record.Change(b.Context(), c.Txn, increment))
		}))
	})
}

// A client does not know what became of its change, and says so; a Transactor
// finds out.
func TestAChangeWhoseReplyIsLostIsUnconfirmedOrHappensOnce(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		once := b.once(c)
		record := recipe.NewRecord(c, "/counter")
		require.NoError(b, record.Change(b.Context(), once.Txn, increment))

		for want, write := range map[error]func(context.Context, ...coord.Op) ([]coord.Result, error){
			coord.ErrUnconfirmed: c.Txn, nil: once.Txn,
		} {
			lost := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, Func: func(r zkembed.Request) bool {
				return slices.Contains(r.Paths, "/counter")
			}, Times: 1}, zkembed.LoseReply())
			require.ErrorIs(b, record.Change(b.Context(), write, increment), want)
			require.Equal(b, 1, lost.Fired())
		}
		require.Equal(b, "3", b.data("/counter"))
	})
}

func TestWhoHasLostItsHoldDoesNotChangeARecord(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(), b.Open()
		h := b.Hold(recipe.Acquire(b.Context(), c, &coord.Spec{Line: inspect.LockLine("/lock"), Kind: "lock"}, coord.First))
		require.NoError(b, recipe.NewRecord(c, "/r").Change(b.Context(), h.Txn, increment))
		require.ErrorIs(b,
			recipe.NewRecord(c, "/r").Change(b.Context(), h.Txn, func(data []byte, stat coord.Stat) ([]byte, error) {
				require.NoError(b, admin.Delete(b.Context(), h.Node(), -1))
				return increment(data, stat)
			}), coord.ErrLost)
		require.Equal(b, "1", b.data("/r"))
	})
}

func TestADecisionThatFailsOrChangesNothingWritesNothing(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		require.NoError(b, c.Create(b.Context(), "/r", []byte("as it is")))
		no := errors.New("no")
		require.ErrorIs(b,
			recipe.NewRecord(c, "/r").Change(b.Context(), c.Txn,
				func([]byte, coord.Stat) ([]byte, error) { return nil, no }), no)
		require.NoError(b,
			recipe.NewRecord(c, "/r").Change(b.Context(), c.Txn,
				func(data []byte, _ coord.Stat) ([]byte, error) { return data, nil }))
		require.Zero(b, b.node("/r").Stat.Version)
	})
}

// A record, and a directory, may be made, deleted and made again while one
// looks at them.
func TestALookSeesARecordAndADirectoryComeAndGo(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(), b.Open()
		watch := func(look func(v *coord.View) (string, error)) <-chan []string {
			return coordtest.Go(func() []string {
				var seen []string
				for now, err := range recipe.Observe(b.Context(), c, "/dir", look, func(a, b string) bool { return a == b }) {
					seen = append(seen, now)
					if len(seen) == 4 || err != nil {
						break
					}
				}
				return seen
			})
		}
		names := watch(func(v *coord.View) (string, error) {
			names, err := v.ChildrenIfAny("/dir")
			return strings.Join(names, " "), err
		})
		record := watch(func(v *coord.View) (string, error) {
			data, _, err := recipe.NewRecord(c, "/dir/record").Look(v, nil)
			return string(data), err
		})
		time.Sleep(time.Second)
		require.NoError(b, admin.Create(b.Context(), "/dir/record", []byte("x")))
		time.Sleep(time.Second)
		require.NoError(b, admin.Delete(b.Context(), "/dir/record", -1))
		require.NoError(b, admin.Delete(b.Context(), "/dir", -1))
		time.Sleep(time.Second)
		require.NoError(b, admin.Create(b.Context(), "/dir/record", []byte("y")))
		require.Equal(b, []string{"", "record", "", "record"}, <-names)
		require.Equal(b, []string{"", "x", "", "y"}, <-record)
	})
}

func TestALookMakesARecordThatIsMissing(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		var data []byte
		require.NoError(b, c.Wait(b.Context(), func(v *coord.View) (done bool, err error) {
			data, _, err = recipe.NewRecord(c, "/a/b/record").Look(v, []byte("first"))
			return true, err
		}))
		require.Equal(b, "first", string(data))
	})
}

// A session comes back, a hold does not.
func TestRetryMakesNoCallAgainForALostHold(t *testing.T) {
	inBubble(t, func(b bubble) {
		calls := 0
		err := recipe.Retry(b.Context(), b.Open(), func(context.Context) error {
			calls++
			if calls > 1 {
				return nil
			}
			return errors.Join(coord.ErrLost, coord.ErrSessionExpired)
		})
		require.ErrorIs(b, err, coord.ErrLost)
	})
}

var parted = coord.Spec{Line: coord.Line{Dir: "/parts"}, Kind: "whole", Exclusive: true}

// whole is a hold with a part.
func (b bubble) whole(c *coord.Client) *coord.Hold {
	b.Helper()
	h := b.Hold(recipe.Acquire(b.Context(), c, &parted, coord.First))
	require.NoError(b, recipe.Attach(b.Context(), h, "/parts/part", nil))
	require.Equal(b, 2, b.owned(h.Session()))
	return h
}

func TestAPartGoesWithItsHoldHoweverThatEnds(t *testing.T) {
	for name, end := range map[string]func(b bubble, c *coord.Client, h *coord.Hold) error{
		"released": func(b bubble, c *coord.Client, h *coord.Hold) error { return h.Release(b.Context()) },
		"released late": func(b bubble, c *coord.Client, h *coord.Hold) error {
			ctx, cancel := context.WithCancel(b.Context())
			cancel()
			return h.Release(ctx)
		},
		"released with a transaction": func(b bubble, c *coord.Client, h *coord.Hold) error {
			return b.release(b.Context(), c, h, coord.CreateOp("/done", nil))
		},
		"released, and the reply is lost": func(b bubble, c *coord.Client, h *coord.Hold) error {
			lost := b.Server.Inject(zkembed.Match{
				Session: h.Session(), Ops: []zkembed.Op{zkembed.OpMulti}, Times: 1,
			}, zkembed.LoseReply())
			err := h.Release(b.Context())
			require.Equal(b, 1, lost.Fired())
			return err
		},
		"broken": func(b bubble, c *coord.Client, h *coord.Hold) error {
			return inspect.Break(b.Context(), b.Open(), h.Node())
		},
		"the part": func(b bubble, c *coord.Client, h *coord.Hold) error {
			return inspect.Break(b.Context(), b.Open(), "/parts/part")
		},
	} {
		runInBubble(t, name, func(b bubble) {
			c := b.Open()
			h := b.whole(c)
			time.Sleep(time.Second) // until our watches are set
			require.NoError(b, end(b, c, h))
			time.Sleep(time.Second)
			if name == "the part" {
				require.NoError(b, h.Err(), "the part is gone and not the whole")
				require.NoError(b, h.Release(b.Context()))
			}
			time.Sleep(2 * T) // for the witness
			require.Zero(b, b.owned(h.Session()))
		})
	}
}

func TestARequestForAPartIsOneForTheHold(t *testing.T) {
	inBubble(t, func(b bubble) {
		h := b.whole(b.Open())
		require.NoError(t, inspect.Revoke(b.Context(), b.Open(), "/parts/part"))
		time.Sleep(time.Second)
		require.True(t, closed(h.Revoked()), "nobody has told the holder")
	})
}

func TestAPartIsNotMadeForAHoldThatIsLost(t *testing.T) {
	inBubble(t, func(b bubble) {
		h := b.acquire(b.Open(), parted)
		b.breakUnawares(h)
		require.ErrorIs(t, recipe.Attach(b.Context(), h, "/", nil), coord.ErrInvalid, "it has no name of its own")
		require.ErrorIs(t, recipe.Attach(b.Context(), h, "/parts/part", nil), coord.ErrLost)
		require.Zero(t, b.owned(h.Session()))
	})
}

func TestOnlyALeaderHasANotice(t *testing.T) {
	const guid = "01234567-89ab-4def-8123-456789abcdef"
	for node, notice := range map[string]string{
		"/e/_c_" + guid + "-latch-0000000012":                   "/e/_c_" + guid + "-latch-",
		"/latch-0/_c_" + guid + "-latch--2147483648":            "/latch-0/_c_" + guid + "-latch-",
		"/e/_c_" + guid + "-lock-0000000012":                    "/e/_c_" + guid + "-lock-0000000012",
		"/e/0123456789abcdef0123456789abcdef__lock__0000000012": "/e/0123456789abcdef0123456789abcdef__lock__0000000012",
		"/e/latch-0000000012":                                   "/e/latch-0000000012",
	} {
		require.Equal(t, notice, inspect.Notice(node))
	}
}

// A hold may be lost for a lost connection, which is not one of the request for
// its part.
func TestAPartOfAHoldThatEndsWithItsConnectionIsNotTriedForEver(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open(coord.LoseAtDisconnect())
		h := b.Hold(recipe.Acquire(b.Context(), c, &parted, coord.First))
		lost := b.Server.Inject(zkembed.Match{Session: h.Session(), Ops: []zkembed.Op{zkembed.OpMulti}, Times: 1},
			zkembed.Drop())
		err := recipe.Attach(b.Context(), h, "/parts/part", nil)
		require.Equal(b, 1, lost.Fired())
		require.ErrorIs(b, err, coord.ErrLost)
	})
}

// inGroup makes a group of holds in the directories /0, /1 and so on.
func (b bubble) inGroup(c *coord.Client, n int) (*hold.Set, []*coord.Hold) {
	b.Helper()
	var holds []*coord.Hold
	for i := range n {
		holds = append(holds, b.stand(c, coord.Spec{Line: groupLine(i), Kind: "member"}))
	}
	return hold.NewSet(holds[0], holds[1:]...), holds
}

func groupLine(i int) coord.Line { return coord.Line{Dir: "/" + string(rune('0'+i))} }

func TestAGroupEndsWithTheFirstOfItsMembers(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		g, holds := b.inGroup(c, 4)
		ctx := g.Context(b.Context())
		time.Sleep(time.Minute)
		require.NoError(t, g.Err())
		require.NoError(t, ctx.Err())
		require.Equal(t, holds, g.Holds())
		require.False(t, g.Deadline().After(holds[3].Deadline()))
		require.NoError(t, inspect.Break(b.Context(), c, holds[2].Node()))
		<-g.Done()
		require.ErrorIs(t, g.Err(), coord.ErrNodeDeleted)
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), coord.ErrLost)
		require.NoError(t, holds[0].Err(), "the others last until the group is released")
		require.NoError(t, g.Release(b.Context()))
		for i, h := range holds {
			if i != 2 {
				require.ErrorIs(t, h.Err(), coord.ErrReleased)
			}
		}
		require.ErrorIs(t, g.Err(), coord.ErrNodeDeleted, "the loss is told also afterwards")
	})
}

func TestAGroupEndsWithTheTrustWindowAtOnceAlsoAfterAPause(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		g, _ := b.inGroup(c, 3)
		b.Server.Partition(zkembed.Cut{})
		deadline := g.Deadline()
		time.Sleep(time.Until(deadline) - time.Nanosecond)
		require.NoError(t, g.Err())
		time.Sleep(time.Nanosecond)
		require.ErrorIs(t, g.Err(), coord.ErrWindowOver)
		b.Server.Heal()
	})
}

func TestAGroupsContextCarriesEveryMember(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		g, holds := b.inGroup(c, 3)
		ctx := g.Context(b.Context())
		for i, h := range holds {
			held, ok := coord.HeldIn(ctx, c, groupLine(i).Dir)
			require.True(t, ok)
			require.Same(t, h, held)
		}
		require.NoError(t, g.Release(b.Context()))
		<-ctx.Done()
	})
}

func TestAGroupIsAskedForWhenAMemberIs(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		g, holds := b.inGroup(c, 3)
		asked := g.Revoked()
		time.Sleep(time.Minute)
		require.False(t, closed(asked), "nobody asked")
		require.NoError(t, inspect.Revoke(b.Context(), c, holds[1].Node()))
		<-asked
		require.NoError(t, g.Err())
		require.NoError(t, g.Release(b.Context()))
		other, _ := b.inGroup(c, 2)
		asked = other.Revoked()
		require.NoError(t, other.Release(b.Context()))
		time.Sleep(time.Minute)
		require.False(t, closed(asked), "a release is no request")
	})
}

func TestAGroupReportsEveryReleaseThatFailed(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		g, holds := b.inGroup(c, 3)
		before := b.Server.Counts()[zkembed.OpDelete]
		b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpDelete}, Times: 2}, zkembed.ReplyError(zkembed.CodeNoAuth))
		err := g.Release(b.Context())
		require.ErrorIs(t, err, coord.ErrNoAuth)
		require.Regexp(t, `^release /.*; release /`, err.Error())
		require.Equal(t, before+3, b.Server.Counts()[zkembed.OpDelete])
		require.ErrorIs(t, holds[0].Err(), coord.ErrReleased)
	})
}

func TestWhoJoinsListsTheOthersForOneRequest(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.connected()
		spec := coord.Spec{Line: coord.Line{Dir: "/line"}, Kind: "member"}
		first := b.stand(c, spec)
		lists := b.listings(c)
		second, names, err := recipe.Join(b.Context(), c, &spec)
		require.NoError(t, err)
		line := coord.Line{Dir: "/line", Kinds: []string{"member"}}.Order(append(names, "else"), coord.Curator)
		require.Len(t, line, 2)
		require.Equal(t, first.Node(), "/line/"+line[0].Name)
		require.Equal(t, second.Node(), "/line/"+line[1].Name)
		require.Equal(t, 1, lists())
	})
}

func TestAGroupOfAnySizeReportsARequestForAMember(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, h := b.holder()
		g := hold.NewSet(h, slices.Repeat([]*coord.Hold{h}, 1<<12)...)
		asked := g.Revoked()
		require.NoError(b, inspect.Revoke(b.Context(), c, h.Node()))
		time.Sleep(time.Second)
		require.True(b, closed(asked), "not told")
		require.NoError(b, g.Release(b.Context()))
	})
}

// A node is deleted and made anew while a look reads it, and the server has a
// watch on the former one.
func TestALookNeverGoesBackToANodeThatWasMissing(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, admin := b.Open(), b.Open()
		slowly := func(op zkembed.Op, skip int) <-chan struct{} {
			match := zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{op}, PathPrefix: "/n", Skip: skip, Times: 1}
			return b.Server.Inject(match, zkembed.Delay(time.Second)).Struck()
		}
		exists, get := slowly(zkembed.OpExists, 0), slowly(zkembed.OpGetData, 1)
		made := coordtest.Go(func() error {
			<-exists
			if err := admin.Create(b.Context(), "/n", []byte("one")); err != nil {
				return err
			}
			<-get
			if err := admin.Delete(b.Context(), "/n", -1); err != nil {
				return err
			}
			return admin.Create(b.Context(), "/n", []byte("two"))
		})
		seen := false
		require.NoError(b, c.Synced().Wait(b.Context(), func(v *coord.View) (bool, error) {
			if !seen {
				_, there, err := v.Exists("/n")
				seen = there
				return false, err
			}
			_, _, err := v.Get("/n")
			return true, err
		}))
		require.NoError(b, <-made)
	})
}

func TestF88AChangeInPlaceIsAChange(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		record := recipe.NewRecord(c, "/r")
		require.NoError(b, c.Create(b.Context(), "/r", []byte("old")))
		upper := func(data []byte, _ coord.Stat) ([]byte, error) { return append(data[:0], "new"...), nil }
		require.NoError(b, record.Change(b.Context(), c.Txn, upper))
		require.Equal(b, "new", b.data("/r"))
		require.NoError(b, coordtest.Err(c.Set(b.Context(), "/r", []byte("old"), -1)))
		watched := func(v *coord.View) (bool, error) { _, _, err := record.Look(v, nil); return true, err }
		require.NoError(b, c.Wait(b.Context(), watched))
		require.NoError(b, record.Change(b.Context(), c.Txn, upper), "of data that others of the process watch")
		require.Equal(b, "new", b.data("/r"))
	})
}
