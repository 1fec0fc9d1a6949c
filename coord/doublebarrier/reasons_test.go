package doublebarrier_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/internal/coordtest"
	"github.com/zkcoord/zkcoord/internal/layout"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// reasons returns the reasons that all were told, which must be the same.
func reasons(t *testing.T, told ...error) map[int]string {
	t.Helper()
	var first *doublebarrier.IncompleteError
	require.ErrorAs(t, told[0], &first)
	for _, err := range told {
		var other *doublebarrier.IncompleteError
		require.ErrorAs(t, err, &other)
		require.Equal(t, first, other)
	}
	return first.Reasons
}

func TestWhyAMemberGaveUpIsToldToTheOthers(t *testing.T) {
	zktest.Each(t, func(t *testing.T, w *zktest.World) {
		bs := several(t, w, 4)
		members := round(t, bs...)
		require.NoError(t, members[0].GiveUp(t.Context(), errors.New("the disk is full")))
		require.NoError(t, members[2].GiveUp(t.Context(), nil))
		told := leaveAll(t, members[1], members[3])
		require.Equal(t, map[int]string{0: "the disk is full"}, reasons(t, told...))
		require.ErrorContains(t, told[0], `round 1 ended with 2 of 4 members missing: [0 2]; 0: "the disk is full"`)

		leave(t, round(t, bs...)...)
		names, err := open(t, w.ConnectString()).Children(t.Context(), w.Path("b"))
		require.NoError(t, err)
		require.Equal(t, layout.DoubleBarrier, names, "the reason is gone with its round")
	})
}

func TestTheOthersAreToldWithWhatAFunctionFailedAndThatItPanicked(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	bs := several(t, w, 3)
	ended := make(chan any, 2)
	for i, f := range []func() error{
		func() error { return errors.New("no such table") }, func() error { panic("a bug") },
	} {
		go func() {
			defer func() { ended <- recover() }()
			_ = bs[i].Do(t.Context(), func(context.Context, *doublebarrier.Member) error { return f() })
		}()
	}
	err := bs[2].Do(t.Context(), func(context.Context, *doublebarrier.Member) error { return nil })
	var said []string
	for _, why := range reasons(t, err) {
		said = append(said, why)
	}
	require.ElementsMatch(t, []string{"no such table", "its function has not returned"}, said)
	for range 2 {
		zktest.Receive(t, coordtest.Soon, ended, "the end")
	}
}

func TestALeaveThatTimesOutTellsTheOthersSo(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	members := round(t, several(t, w, 2)...)
	require.ErrorIs(t, members[0].Leave(coordtest.Within(t, 50*time.Millisecond)), context.DeadlineExceeded)
	require.Contains(t, reasons(t, members[1].Leave(t.Context()))[0], "context deadline exceeded")
}

func TestReasonsStaySmallHoweverManyGiveUp(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	members := round(t, several(t, w, 20)...)
	for _, m := range members[1:] {
		require.NoError(t, m.GiveUp(t.Context(), errors.New(strings.Repeat("ä\n\xff<", 1000))))
	}
	said := reasons(t, members[0].Leave(t.Context()))
	require.NotEmpty(t, said)
	for _, why := range said {
		require.True(t, strings.HasPrefix(why, "ä\n\uFFFD<"), "%q", why)
		require.LessOrEqual(t, len(why), 200)
	}
	data, _, err := open(t, w.ConnectString()).Get(t.Context(), w.Path("b/ready"))
	require.NoError(t, err)
	require.Less(t, len(data), 1500)
}

func TestARemovedBarrierLeavesNoReason(t *testing.T) {
	w := zktest.New(t, zktest.Embedded)
	bs := several(t, w, 2)
	members := round(t, bs...)
	require.NoError(t, members[0].GiveUp(t.Context(), errors.New("why")))
	require.ErrorIs(t, members[1].Leave(t.Context()), doublebarrier.ErrIncomplete)
	require.NoError(t, bs[0].Remove(t.Context()))
	_, err := open(t, w.ConnectString()).Children(t.Context(), w.Path("b"))
	require.ErrorIs(t, err, coord.ErrNoNode)
}
