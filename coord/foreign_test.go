package coord_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/zkembed"
)

// strict is a mutex that shares its line with readers and writers only.
var strict = coord.Spec{Line: inspect.LockLine(mutex.Line.Dir), Kind: "lock", Exclusive: true}

// unknown runs a test for each shape of a name that belongs to no known recipe.
func unknown(t *testing.T, f func(b bubble, begins string)) {
	for _, begins := range coordtest.UnknownRecipes {
		runInBubble(t, "name="+strings.ReplaceAll(begins, "/", "_")+"0", func(b bubble) { f(b, begins) })
	}
}

func TestF64AContenderOfAnUnknownRecipeThatCameFirstIsNotPassed(t *testing.T) {
	unknown(t, func(b bubble, begins string) {
		c := b.Open()
		node, remove := b.Unknown(mutex.Line.Dir, begins)
		for _, err := range []error{
			coordtest.Err(recipe.TryAcquire(b.Context(), c, &mutex, first)),
			coordtest.Err(recipe.Acquire(b.Context(), c, &mutex, first)),
		} {
			require.ErrorIs(b, err, coord.ErrForeign)
			require.ErrorContains(b, err, node[len(mutex.Line.Dir)+1:])
		}
		require.Empty(b, b.nodesOf(c.Info().SessionID))
		remove()
		b.acquire(c)
	})
}

func TestF64AContenderOfAnUnknownRecipeThatIsFoundLaterIsWaitedFor(t *testing.T) {
	unknown(t, func(b bubble, begins string) {
		c, heard := b.hearing(event.Foreign)
		require.NoError(b, coordtest.Write(b.Context(), c))
		node, remove := b.Unknown(mutex.Line.Dir, begins)
		lost := b.Server.Inject(
			zkembed.Match{Session: c.Info().SessionID, Ops: []zkembed.Op{zkembed.OpGetChildren2}, Times: 1}, zkembed.LoseReply())
		waiting := b.wait(c, mutex)
		time.Sleep(time.Hour)
		require.Equal(b, 1, lost.Fired())
		require.Empty(b, waiting)
		require.Equal(b, node, (<-heard).Path)
		remove()
		b.granted(waiting)
		require.Empty(b, heard, "reported once")
	})
}

func TestF64AContenderOfAnUnknownRecipeThatComesBehindAWaiterIsReported(t *testing.T) {
	unknown(t, func(b bubble, begins string) {
		c, heard := b.hearing(event.Foreign)
		require.NoError(b, coordtest.Write(b.Context(), c))
		h := b.acquire(b.Open())
		waiting := b.wait(c, mutex)
		node, _ := b.Unknown(mutex.Line.Dir, begins)
		require.NoError(b, h.Release(b.Context()))
		b.granted(waiting)
		time.Sleep(T / 2)
		require.Len(b, heard, 1)
		require.Equal(b, node, (<-heard).Path)
		time.Sleep(T)
		require.Empty(b, heard, "reported once")
	})
}

// Another kind of claim that its maker did not name is as unknown.
func TestF64AContenderOfAKindThatDoesNotTakePartIsNotPassed(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		h := b.acquire(b.Open(), coord.Spec{Line: coord.Line{Dir: mutex.Line.Dir}, Kind: "custom"})
		require.ErrorIs(b, coordtest.Err(recipe.TryAcquire(b.Context(), c, &strict, first)), coord.ErrForeign)
		require.ErrorIs(b, coordtest.Err(recipe.Acquire(b.Context(), c, &strict, first)), coord.ErrForeign)
		require.NoError(b, h.Release(b.Context()))
		b.acquire(c)
	})
}

// Claims that do not exclude each other are not harmed by a stranger.
func TestF64ALineOfAnyDialectIgnoresContendersOfUnknownRecipes(t *testing.T) {
	unknown(t, func(b bubble, begins string) {
		c, heard := b.hearing(event.Foreign)
		_, _ = b.Unknown(mutex.Line.Dir, begins)
		b.acquire(c, coord.Spec{Line: coord.Line{Dir: mutex.Line.Dir, AnyDialect: true}, Kind: "any"})
		time.Sleep(T)
		require.Empty(b, heard)
	})
}

// What inspect says agrees with what claims do.
func TestF64WhoHoldsBesideAContenderOfAnUnknownRecipe(t *testing.T) {
	unknown(t, func(b bubble, begins string) {
		c := b.Open()
		before, _ := b.Unknown(mutex.Line.Dir, begins)
		b.stand(c, mutex)
		after, _ := b.Unknown(mutex.Line.Dir, begins)
		line := b.contenders(c, mutex.Line.Dir, "lock")
		require.Len(b, line, 3)
		for i, node := range []string{before, line[1].Node, after} {
			require.Equal(b, node, line[i].Node)
			require.False(b, line[i].Holds, "it waits, or is not known to hold")
		}
		require.Equal(b, []coord.Dialect{coord.Unknown, coord.Curator, coord.Unknown},
			[]coord.Dialect{line[0].Dialect, line[1].Dialect, line[2].Dialect})
	})
}

// late are contenders that holders of a lock do not exclude.
func (b bubble) late(come func(begins string)) {
	for _, begins := range append(slices.Clone(coordtest.UnknownRecipes),
		"0123456789abcdef0123456789abcdef__lock__", "_c_0b1f7a3c-98aa-4a53-8d0b-5f2f3d1c2e4a-latch-") {
		come(begins)
	}
}

func TestF94AContenderThatComesWhileAHoldLastsIsReported(t *testing.T) {
	read := coord.Spec{Line: inspect.LockLine(mutex.Line.Dir), Kind: "read"}
	for name, spec := range map[string]coord.Spec{"lock": strict, "shared": read} {
		runInBubble(t, name, func(b bubble) {
			c, heard := b.hearing(event.Foreign)
			h := b.acquire(c, spec)
			time.Sleep(10 * T)
			require.Empty(b, heard)
			b.late(func(begins string) {
				node, remove := b.Unknown(mutex.Line.Dir, begins)
				time.Sleep(T / 2)
				require.Len(b, heard, 1, begins)
				require.Equal(b, node, (<-heard).Path)
				time.Sleep(3 * T)
				require.Empty(b, heard, "reported once")
				remove()
			})
			require.NoError(b, h.Err(), "which nobody has revoked")
		})
	}
}

func TestF94AContenderThatComesWhileTheConnectionIsDownIsReported(t *testing.T) {
	inBubble(t, func(b bubble) {
		c, heard := b.hearing(event.Foreign)
		h := b.acquire(c)
		time.Sleep(T)
		other := b.connected()
		require.NoError(b, b.Server.DropConn(c.Info().SessionID))
		made, err := other.Txn(b.Context(), coord.AppendOp(mutex.Line.Dir+"/n_", nil))
		require.NoError(b, err)
		time.Sleep(T)
		require.NoError(b, h.Err())
		require.Equal(b, made[0].Path, (<-heard).Path)
	})
}

// A hold that is not shorter than most costs one listing, not one for each time
// that the line is looked at.
func TestF94AHoldListsALineToWhichNobodyComesOnce(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		h := b.acquire(c)
		lists := b.listings(c)
		time.Sleep(T / 4)
		require.Zero(b, lists(), "a hold that does not last")
		time.Sleep(time.Hour)
		require.Equal(b, 1, lists())
		before := b.Server.Counts()
		require.NoError(b, h.Release(b.Context()))
		time.Sleep(time.Hour)
		require.Equal(b, 1, lists())
		require.Equal(b, 1, b.Server.Counts().Since(before).Total(), "the deletion")
	})
}

// A line in which many come and go is no herd: neither is each newcomer listed,
// nor do all who share the line list it alike.
func TestF94HoldersOfABusyLineListItRarely(t *testing.T) {
	inBubble(t, func(b bubble) {
		const readers, long = 8, 20
		line := inspect.LockLine(mutex.Line.Dir)
		var lists []func() int
		for range readers {
			c := b.Open()
			b.stand(c, coord.Spec{Line: line, Kind: "read"})
			lists = append(lists, b.listings(c))
		}
		visitor, begun := b.Open(), time.Now()
		for time.Since(begun) < long*T {
			require.NoError(b, b.stand(visitor, coord.Spec{Line: line, Kind: "read", Unlisted: true}).Release(b.Context()))
			time.Sleep(T / 50)
		}
		for place, lists := range lists {
			n, most := lists(), 1+long*5/(1+place)
			require.LessOrEqual(b, n, most, "reader %d", place)
			require.GreaterOrEqual(b, n, most/2, "reader %d", place)
		}
	})
}

func TestF94AClientWithManyHoldsSpreadsItsLooks(t *testing.T) {
	inBubble(t, func(b bubble) {
		c := b.Open()
		var spec coord.Spec
		for i := range 100 {
			spec = coord.Spec{Line: coord.Line{Dir: mutex.Line.Dir + "-" + strconv.Itoa(i)}, Kind: "lock"}
			b.acquire(c, spec)
		}
		lists := b.listings(c)
		for i := range 12 {
			before := lists()
			time.Sleep(T / 10)
			require.LessOrEqual(b, lists()-before, 2*32, "tenth %d", i)
		}
		synctest.Wait()
		require.Equal(b, 100, lists())
	})
}
