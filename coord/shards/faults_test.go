package shards_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/lock"
	"github.com/zkcoord/zkcoord/coord/shards"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// write writes over the plan.
func (b bubble) write(c *coord.Client, plan string) {
	b.Helper()
	require.NoError(b, coordtest.Err(c.Set(b.Context(), "/shards/plan", []byte(plan), -1)))
}

// deleteAll deletes a node and all that is below it now, as zkCli's deleteall
// does.
func (b bubble) deleteAll(c *coord.Client, path string) {
	b.Helper()
	all := []string{path}
	for i := 0; i < len(all); i++ {
		names, err := c.Children(b.Context(), all[i])
		if !errors.Is(err, coord.ErrNoNode) {
			require.NoError(b, err)
		}
		for _, name := range names {
			all = append(all, all[i]+"/"+name)
		}
	}
	for _, node := range slices.Backward(all) {
		if err := c.Delete(b.Context(), node, -1); !errors.Is(err, coord.ErrNoNode) && !errors.Is(err, coord.ErrNotEmpty) {
			require.NoError(b, err)
		}
	}
}

// owned waits until n keys have owners, and nothing changes for a while.
func (b bubble) owned(n int) {
	b.Helper()
	begun := time.Now()
	for all := -1; all != n; _, all = b.loads() {
		require.Less(b, time.Since(begun), coordtest.T+3*time.Second, "%d of %d keys", all, n)
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(time.Second)
	_, all := b.loads()
	require.Equal(b, n, all)
}

func TestF67AKeyMovesAfterItsCooldownWhateverAClockSays(t *testing.T) {
	inBubble(t, func(b bubble) {
		admin := b.Open()
		cooldown := shards.Cooldown(time.Minute)
		b.alone(12, cooldown)
		b.start("two", keys(12), cooldown)
		b.settled(12, 2)
		// Somebody's clock was a day ahead.
		data, _, err := admin.Get(b.Context(), "/shards/plan")
		require.NoError(b, err)
		var plan map[string]any
		require.NoError(b, json.Unmarshal(data, &plan))
		moved := plan["moved"].(map[string]any)
		moved["first"] = moved["first"].(float64) + 24*3600
		data, err = json.Marshal(plan)
		require.NoError(b, err)
		b.write(admin, string(data))
		b.start("three", keys(12), cooldown, shards.Weight(100))
		time.Sleep(30 * time.Second)
		by, _ := b.loads()
		require.Equal(b, 6, by["two"], "what has moved stays: %v", by)
		time.Sleep(time.Minute)
		by, _ = b.loads()
		require.Zero(b, by["two"], "%v", by)
	})
}

func TestF71WhatAMemberWasToldOutlivesTheServersData(t *testing.T) {
	for name, set := range map[string]bool{"the first member's list": false, "a list that was set": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				empty, err := zkembed.Start(zkembed.WithAddr(""), zkembed.WithTick(coordtest.Tick), zkembed.WithReaper(0))
				require.NoError(b, err)
				b.Cleanup(func() { require.NoError(b, empty.Close()) })
				var now atomic.Pointer[zkembed.Server]
				now.Store(b.Server)
				dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
					return now.Load().DialContext(ctx, network, addr)
				}
				n, one := 12, b.with(b.Open(coord.WithDialer(dial)), "one", keys(12))
				b.settled(n, 1)
				b.with(b.Open(coord.WithDialer(dial)), "two")
				b.with(b.Open(coord.WithDialer(dial)), "three")
				b.settled(n, 3)
				if set {
					n = 3
					require.NoError(b, one.SetKeys(b.Context(), "a", "b", "c"))
					b.settled(n, 3)
				}
				// The one that gave the list is not there afterwards.
				one.finish(b)
				b.settled(n, 2)
				now.Store(empty)
				b.Server.Stop()
				b.forgetTokens()
				time.Sleep(coordtest.T)
				b.settled(n, 2)
				b.Server.Resume()
				b.with(b.Open(coord.WithDialer(dial)), "one", keys(12))
				b.settled(n, 3)
			})
		})
	}
}

func TestF71AllKeysAreOwnedAgainAfterTheRootWasDeleted(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.alone(12)
		b.start("two")
		b.start("three")
		b.settled(12, 3)
		for range 3 {
			b.deleteAll(b.Open(), "/shards")
			b.settled(12, 3)
			b.owned(12)
		}
	})
}

// A key whose function always fails is tried with back-off. All others are
// worked at all the time.
func TestF72AKeyWhoseFunctionFailsStopsNoOther(t *testing.T) {
	inBubble(t, func(b bubble) {
		const bad = "key 0003"
		var mu sync.Mutex
		var calls []time.Time
		work := func(id string) shards.Func {
			good := b.work(id)
			return func(ctx context.Context, key string, h coord.Held) error {
				if key == bad {
					mu.Lock()
					defer mu.Unlock()
					calls = append(calls, time.Now())
					return errors.New("no luck")
				}
				return good(ctx, key, h)
			}
		}
		var all []telling
		for i := range 3 {
			id := fmt.Sprint("m", i)
			all = append(all, b.runTelling(work(id), shards.ID(id), keys(12)))
		}
		b.owned(11)
		b.forget()
		time.Sleep(10 * time.Minute)
		b.owned(11)
		require.Zero(b, b.moves)
		mu.Lock()
		tried := slices.Clone(calls)
		mu.Unlock()
		last := tried[len(tried)-1].Sub(tried[len(tried)-2]).Round(time.Second)
		require.Equal(b, time.Minute, last)
		_, states, err := all[0].Status(b.Context())
		require.NoError(b, err)
		is := states[3]
		require.Equal(b, shards.LifeFailing, is.Life)
		require.Equal(b, "no luck", is.Trouble.Error)
		require.Equal(b, is.Owner.Member.ID, is.Trouble.Member)
		require.LessOrEqual(b, len(tried)-4, is.Trouble.Count, "it may have moved while members came")
		require.WithinRange(b, is.Trouble.Again, time.Now(), time.Now().Add(time.Minute))
		require.WithinRange(b, is.Trouble.Since, time.Now().Add(-12*time.Minute), time.Now().Add(-10*time.Minute))
		told := 0
		for _, m := range all {
			for len(m.events) > 0 {
				e := <-m.events
				require.Equal(b, []any{shards.KeyFailed, bad, "no luck"}, []any{e.Kind, e.Key, e.Err.Error()})
				told++
			}
		}
		require.Equal(b, len(tried), told)
	})
}

// A rival that has a member's ID for a moment, while the list changes.
func TestF80AMemberThatWasOutForAMomentComesBack(t *testing.T) {
	inBubble(t, func(b bubble) {
		_, two := b.pair(10)
		rival := b.start("two", keys(10))
		time.Sleep(time.Second)
		require.NoError(b, two.SetKeys(b.Context(), "a", "b", "c", "d"))
		time.Sleep(time.Second)
		rival.finish(b)
		b.settled(4, 2)
		time.Sleep(2 * coordtest.T)
		b.settled(4, 2)
	})
}

func TestF80AFirstMemberWhoseListIsReplacedBeforeItHasPlanned(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.alone(5).finish(b)
		for when := range 20 { // a takeover takes 0.1 s
			one := b.start("one", keys(7+when))
			time.Sleep(time.Duration(when) * 10 * time.Millisecond)
			require.NoError(b, one.SetKeys(b.Context(), "a", "b", fmt.Sprint("c", when)))
			b.settled(3, 1)
			b.owned(3)
			one.finish(b)
		}
	})
}

func TestF80APlanThatSetKeysMakesAgainIsFollowed(t *testing.T) {
	for _, opts := range [][]shards.Option{nil, {shards.ListVersion(7)}} {
		inBubble(t, func(b bubble) {
			one := b.start("one", append(opts, keys(10))...)
			b.start("two", append(opts, keys(10))...)
			b.settled(10, 2)
			slow := b.Server.Inject(zkembed.Match{Session: one.client.Info().SessionID, Ops: []zkembed.Op{zkembed.OpMulti}},
				zkembed.DelayReply(5*time.Second))
			admin := b.Open()
			require.NoError(b, admin.Delete(b.Context(), "/shards/plan", -1))
			require.NoError(b, b.shards(admin).SetKeys(b.Context(), "a", "b", "c"))
			slow.Remove()
			b.owned(3)
		})
	}
}

// Whatever somebody writes into the plan, what is held stays held, and the
// planner writes it anew.
func TestF81APlanThatIsWrittenOverIsWrittenAnew(t *testing.T) {
	for name, plan := range map[string]string{
		"text": "x", "nothing": "", "an object": "{}", "null": "null", "no members": `{"format":1,"keys":["a"],"owners":[0]}`,
		"a negative weight": `{"format":1,"keys":["a"],"owners":[0],"members":[{"id":"a","weight":-1}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				admin := b.Open()
				one := b.startTelling("one", keys(10))
				b.start("two", keys(10))
				b.settled(10, 2)
				b.forget()
				for range 3 {
					b.write(admin, plan)
					require.Equal(b, shards.PlanIsNoPlan, one.next(b).Kind)
					time.Sleep(time.Second)
					require.Zero(b, b.moves)
				}
				b.start("three", keys(10))
				b.settled(10, 3)
				b.write(admin, plan)
				one.finish(b)
				b.settled(10, 2)
				b.write(admin, plan)
				require.NoError(b, b.shards(admin).SetKeys(b.Context(), "a", "b"))
				b.owned(2)
			})
		})
	}
}

func TestF81APlanOfANewerFormatIsLeftAlone(t *testing.T) {
	inBubble(t, func(b bubble) {
		const newer = `{"format":2,"members":{}}`
		admin := b.Open()
		one := b.startTelling("one", keys(10))
		two := b.start("two", keys(10))
		b.settled(10, 2)
		b.forget()
		b.write(admin, newer)
		told := one.next(b)
		require.Equal(b, shards.PlanIsNewer, told.Kind, "%v", told)
		require.ErrorContains(b, told.Err, "2, and this version reads 1")
		three := b.startTelling("three", keys(10))
		require.Equal(b, shards.PlanIsNewer, three.next(b).Kind)
		two.finish(b)
		time.Sleep(10 * coordtest.T)
		by, _ := b.loads()
		require.Equal(b, map[string]int{"one": 5}, by, "what is held stays held")
		require.ErrorContains(b, one.SetKeys(b.Context(), "a"), "newer format")
		data, _, err := admin.Get(b.Context(), "/shards/plan")
		require.NoError(b, err)
		require.Equal(b, newer, string(data))
		require.Empty(b, one.events, "it waits, and nothing is delayed")
		require.Empty(b, three.events)
	})
}

// What stands in one key's line keeps that key alone waiting.
func TestF82ANodeInOneKeysLineStopsNoOtherKey(t *testing.T) {
	for name, node := range map[string]string{
		"a persistent node": "_c_01234567-89ab-cdef-0123-456789abcdef-lock-0000000000",
		"another dialect's": "0123456789abcdef0123456789abcdef__lock__0000000000",
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				admin := b.Open()
				node := b.shards(admin).Line("key 0003").Dir + "/" + node
				require.NoError(b, admin.Create(b.Context(), node, nil))
				all := []telling{b.startTelling("m0", keys(10)), b.startTelling("m1", keys(10))}
				b.owned(9)
				for i := range all { // as a rolling restart does
					all[i].leaves(b)
					all[i] = b.startTelling(fmt.Sprint("m", i), keys(10))
					b.owned(9)
				}
				time.Sleep(5 * time.Minute)
				b.owned(9)
				_, states, err := all[0].Status(b.Context())
				require.NoError(b, err)
				require.Equal(b, shards.LifeWaiting, states[3].Life)
				require.NotEmpty(b, states[3].Trouble.Error)
				told := all[0].next
				if states[3].Desired.ID == "m1" {
					told = all[1].next
				}
				e := told(b)
				require.Equal(b, []string{shards.KeyWaits, "key 0003"}, []string{e.Kind, e.Key})
				require.NoError(b, admin.Delete(b.Context(), node, -1))
				time.Sleep(time.Minute)
				b.owned(10)
			})
		})
	}
}

// A node that stands before the one that owns a key keeps the next from asking
// it.
func TestF82AMemberLeavesThoughAKeysLineIsBlocked(t *testing.T) {
	inBubble(t, func(b bubble) {
		admin := b.Open()
		one := b.alone(10)
		dir := one.Line("key 0003").Dir
		node := dir + "/_c_01234567-89ab-cdef-0123-456789abcdef-lock-0000000000"
		require.NoError(b, admin.Create(b.Context(), node, nil))
		b.start("two", shards.Weight(0))
		b.start("three")
		b.settled(10, 2)
		require.NoError(b, one.Leave(b.Within(coordtest.T+10*time.Second)))
		require.NoError(b, <-one.ended)
		b.owned(9)
		require.NoError(b, admin.Delete(b.Context(), node, -1))
		b.settled(10, 1)
	})
}

// A lock of another program, which does not heed requests, on a key that is to
// move when only one may at a time.
func TestF82AMoveThatCannotEndHoldsUpNoOther(t *testing.T) {
	inBubble(t, func(b bubble) {
		one := b.start("one", keys(10), shards.MovesAtATime(1))
		c := b.Open()
		m, err := lock.New(c, one.Line("key 0000").Dir)
		require.NoError(b, err)
		b.owned(10)
		held := coordtest.Begin(b.Context(), m.Acquire)
		synctest.Wait()
		require.NoError(b, c.Delete(b.Context(), b.owner(one, "key 0000").Node, -1))
		h := coordtest.Had(b.T, held)
		b.owned(9)
		b.start("two", shards.MovesAtATime(1))
		time.Sleep(10 * time.Second)
		by, _ := b.loads()
		require.GreaterOrEqual(b, by["two"], 4)
		left := coordtest.Go(func() error { return one.Leave(b.Context()) })
		time.Sleep(10 * time.Second) // a move that is under way counts for longer
		by, _ = b.loads()
		require.Equal(b, 9, by["two"])
		require.NoError(b, <-left)
		require.NoError(b, <-one.ended)
		require.NoError(b, h.Release(b.Context()))
		b.owned(10)
	})
}

// A function that does not drain has its place among the moves for a time.
func TestF82AMoveThatTakesTooLongCountsNoMore(t *testing.T) {
	inBubble(t, func(b bubble) {
		release := make(chan struct{})
		defer close(release)
		b.start("planner", keys(10), shards.MovesAtATime(1), shards.Weight(0)) // by whose DrainTimeout a move counts
		time.Sleep(time.Second)
		one := b.run(b.Open(), func(ctx context.Context, key string, h coord.Held) error {
			if key != "key 0000" {
				return b.work("one")(ctx, key, h)
			}
			select { // a command that cannot be ended
			case <-release:
			case <-time.After(time.Hour):
			}
			return nil
		}, shards.ID("one"), keys(10), shards.MovesAtATime(1), shards.DrainTimeout(time.Hour))
		b.owned(9)
		two := b.start("two", shards.MovesAtATime(1))
		one.Shards.Leave(b.Within(time.Millisecond))
		time.Sleep(10 * time.Minute)
		early, _ := b.loads()
		require.Equal(b, 9, early["two"], "all but the one that is not given up")
		time.Sleep(2 * time.Hour)
		require.NoError(b, <-one.ended)
		by, _ := b.loads()
		require.Equal(b, 10, by["two"])
		two.finish(b)
	})
}

// Nodes that look like a member's, and stand before all members.
func TestF82AStrangerAmongTheMembersKeepsNobodyFromPlanning(t *testing.T) {
	for name, make := range map[string]func(path string) coord.Op{
		"persistent": func(path string) coord.Op {
			return coord.CreateOp(path, []byte(`{"format":1,"id":"x","weight":1,"list":"x"}`))
		},
		"ephemeral": func(path string) coord.Op { return coord.EphemeralOp(path, []byte("x")) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				admin := b.Open()
				require.NoError(b, admin.EnsureDir(b.Context(), "/shards/members"))
				stranger := "/shards/members/_c_01234567-89ab-cdef-0123-456789abcdef-member-0000000000"
				require.NoError(b, coordtest.Err(admin.Txn(b.Context(), make(stranger))))
				b.pair(10)
				b.start("three", keys(10))
				b.settled(10, 3)
			})
		})
	}
}

// A planner that may not write its plan goes on, and says so.
func TestF82AMemberGoesOnThoughTheServersRefuseItsPlan(t *testing.T) {
	inBubble(t, func(b bubble) {
		one := b.startTelling("one", keys(10))
		b.settled(10, 1)
		refused := b.Server.Inject(zkembed.Match{Ops: []zkembed.Op{zkembed.OpMulti}, PathPrefix: "/shards/plan"},
			zkembed.ReplyError(zkembed.CodeNoAuth))
		b.start("two", keys(10))
		e := one.next(b)
		require.Equal(b, shards.MemberIsDelayed, e.Kind)
		require.ErrorIs(b, e.Err, coord.ErrNoAuth)
		time.Sleep(5 * time.Minute)
		by, _ := b.loads()
		require.Equal(b, 10, by["one"])
		refused.Remove()
		time.Sleep(time.Minute)
		b.settled(10, 2)
	})
}

func TestF83AListThatWasSetIsNotUndoneByAnOlderOne(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.alone(10).finish(b)
		admin := b.shards(b.Open())
		require.NoError(b, admin.SetKeys(b.Context(), "a", "b", "c"))
		one := b.startTelling("one", keys(10))
		b.settled(3, 1)
		told := one.next(b)
		require.Equal(b, shards.ListIsNewer, told.Kind)
		require.ErrorContains(b, told.Err, "version 1")
		b.start("two", keys(4))
		b.settled(3, 2)
		one.finish(b)
		b.start("one", keys(10), shards.ListVersion(2))
		b.settled(10, 2)
	})
}

// Also when nobody is there to follow it.
func TestF83AListThatWasSetIsReplacedByNoOtherOfItsVersion(t *testing.T) {
	inBubble(t, func(b bubble) {
		b.alone(10).finish(b)
		require.NoError(b, b.shards(b.Open()).SetKeys(b.Context(), "a", "b", "c"))
		require.ErrorIs(b, b.start("one", keys(10), shards.ListVersion(1)).fails(b), coord.ErrDisagree)
		b.start("two")
		b.settled(3, 1)
	})
}

// Members with much data: the one that is too much is refused, and those that
// work go on.
func TestF84WhoComesTooMuchIsRefused(t *testing.T) {
	inBubble(t, func(b bubble) {
		small := coord.WithMaxPacket(7168)
		data := shards.Data(make([]byte, 1000))
		b.with(b.Open(small), "one", keys(40), data)
		b.with(b.Open(small), "two", data)
		b.with(b.Open(small), "three", data)
		b.settled(40, 3)
		four := b.with(b.Open(small), "four", data)
		err := four.fails(b)
		require.ErrorIs(b, err, coord.ErrTooLarge)
		require.ErrorContains(b, err, "40 keys for 4 members")
		b.settled(40, 3)
		long := make([]string, 60)
		for i := range long {
			long[i] = fmt.Sprintf("%060d", i)
		}
		admin := b.shards(b.Open(small))
		require.ErrorIs(b, admin.SetKeys(b.Context(), long...), coord.ErrTooLarge)
		b.with(b.Open(small), "four") // with less data
		b.settled(40, 4)
		_, err = shards.New(four.client, "/shards", shards.Ranges(10_000))
		require.ErrorIs(b, err, coord.ErrTooLarge)
	})
}

// hanging is a function that does not return before release is closed, for one
// key, however its context ends.
func (b bubble) hanging(id, key string, release <-chan struct{}) shards.Func {
	return func(ctx context.Context, is string, h coord.Held) error {
		if is == key {
			b.begin(id, is, h)
			<-ctx.Done()
			b.end(is)
			<-release
			return nil
		}
		return b.work(id)(ctx, is, h)
	}
}

// The function of one key hangs after its session, or its key, is lost.
func TestF85AFunctionThatHangsIsGivenUp(t *testing.T) {
	for name, lose := range map[string]func(b bubble, m telling){
		"its session": func(b bubble, m telling) { require.NoError(b, b.Server.ExpireSession(m.client.Info().SessionID)) },
		"its key": func(b bubble, m telling) {
			require.NoError(b, b.Open().Delete(b.Context(), b.owner(m, "key 0001").Node, -1))
		},
		"its member": func(b bubble, m telling) {
			require.NoError(b, b.Open().Delete(b.Context(), "/shards/members/"+m.node(b), -1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				release := make(chan struct{})
				timeout := shards.DrainTimeout(5 * time.Second)
				one := b.runTelling(b.hanging("one", "key 0001", release), shards.ID("one"), keys(6), timeout)
				b.settled(6, 1)
				lose(b, one)
				time.Sleep(10 * time.Second)
				b.owned(5)
				e := one.next(b)
				require.Equal(b, []string{shards.KeyGivenUp, "key 0001"}, []string{e.Kind, e.Key})
				require.ErrorIs(b, e.Err, shards.ErrDrainTimeout)
				_, states, err := one.Status(b.Context())
				require.NoError(b, err)
				require.Equal(b, shards.LifeGivenUp, states[1].Life)
				// Another member can have the key.
				two := b.start("two")
				b.settled(6, 2)
				require.Equal(b, "two", b.ownerOf("key 0001"))
				two.leaves(b)
				b.owned(5)
				close(release)
				b.settled(6, 1)
				one.leaves(b)
			})
		})
	}
}

func TestF85AMemberEndsThoughAFunctionHangs(t *testing.T) {
	inBubble(t, func(b bubble) {
		release := make(chan struct{})
		defer close(release)
		one := b.run(b.Open(), b.hanging("one", "key 0001", release), shards.ID("one"), keys(6),
			shards.DrainTimeout(5*time.Second))
		b.settled(6, 1)
		b.start("two")
		b.settled(6, 2)
		begun := time.Now()
		one.stop()
		err := one.fails(b)
		require.ErrorIs(b, err, context.Canceled)
		if b.ownerOf("key 0001") != "two" {
			require.ErrorIs(b, err, shards.ErrDrainTimeout)
		}
		require.LessOrEqual(b, time.Since(begun), 7*time.Second)
		b.settled(6, 1)
	})
}

func TestF85AFunctionThatPanicsOrExitsHasFailed(t *testing.T) {
	for name, end := range map[string]func(){
		"the function panicked: out of order": func() { panic("out of order") },
		"runtime.Goexit":                      runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b bubble) {
				calls := 0
				one := b.runTelling(func(ctx context.Context, key string, h coord.Held) error {
					if key == "key 0001" {
						calls++
						if calls < 4 {
							end()
						}
					}
					return b.work("one")(ctx, key, h)
				}, shards.ID("one"), keys(6))
				b.owned(5)
				e := one.next(b)
				require.Equal(b, []string{shards.KeyFailed, "key 0001"}, []string{e.Kind, e.Key})
				require.ErrorContains(b, e.Err, name)
				time.Sleep(10 * time.Second)
				b.owned(6)
				one.leaves(b)
			})
		})
	}
}
