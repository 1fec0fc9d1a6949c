package see

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
	"github.com/zkcoord/zkcoord/cmd/internal/history"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

// drawnPast is the drawing of looks at one path, one second apart; a look that
// is nil was not made. A character stands for a second. The looks show nodes of
// owner's name, and "" for nobody.
func drawnPast(t *testing.T, told func(h *history.History, second int), looks ...*history.Path) []string {
	t.Helper()
	start := time.Unix(1_800_000_000, 0)
	h := history.New(history.Limits{Keep: time.Hour, Intervals: 100, Points: 100, Apart: 1500 * time.Millisecond})
	for i, p := range looks {
		if told != nil {
			told(h, i)
		}
		if at := start.Add(time.Duration(i) * time.Second); p != nil {
			h.See(history.Look{Began: at, Ended: at, Paths: map[string]history.Path{"/l": *p}})
		}
	}
	var text strings.Builder
	n := len(looks)
	newTimeline(h, "/l", start.Add(time.Duration(n)*time.Second), time.Duration(n)*time.Second).
		write(term.Page{Writer: &text, Columns: len("holders  ") + n + len(" 0 to 100000")})
	return strings.Split(text.String(), "\n")
}

func heldBy(owner, stamp string) *history.Path {
	p := &history.Path{Kind: "lock", Stamp: stamp}
	if owner != "" {
		p.Holders = []history.Holder{{Node: "/l/" + owner, Token: 1, Owner: owner, Session: owner}}
	}
	return p
}

func TestABarTellsHoldsGapsAndEndsApart(t *testing.T) {
	t.Parallel()
	a, b, none := heldBy("a", "1"), heldBy("b", "3"), heldBy("", "2")
	broken := func(h *history.History, second int) {
		if second == 3 {
			h.Breaks("/l/a", true)
		}
	}
	unstamped := heldBy("", "")
	for _, c := range []struct {
		want  string
		looks []*history.Path
	}{
		{"███B··███", []*history.Path{a, a, a, none, none, none, b, b, b}},
		{
			"███B::███", []*history.Path{a, a, a, unstamped, unstamped, unstamped, b, b, b},
		}, // others may have held between two looks
		{"██    ?██", []*history.Path{a, a, nil, nil, nil, nil, b, b, b}},
		{"█████████", []*history.Path{a, a, nil, nil, nil, nil, a, a, a}}, // its node was there all the time
	} {
		told := broken
		if c.looks[2] == nil {
			told = nil
		}
		require.Equal(t, "holders  "+c.want, drawnPast(t, told, c.looks...)[0])
	}
	for how, r := range endedAs {
		require.NotContains(t, string([]rune{barHeld, barNobody, barAtLooks, barUnknown, barUnseen}), string(r), how)
		require.Contains(t, legend, string(r), how)
	}
}

func TestALineShowsAQueuesDepth(t *testing.T) {
	t.Parallel()
	var looks []*history.Path
	for _, items := range []int{0, 1, 2, 4, 8, 8, 16, 16, 3, 0} {
		looks = append(looks, &history.Path{Kind: "queue", Lanes: []string{}, Queue: &history.Queue{Items: items}})
	}
	lines := drawnPast(t, nil, looks...)
	require.True(t, strings.HasPrefix(lines[0], "items    "), lines[0])
	require.Contains(t, lines[0], "█")
	require.Contains(t, lines[0], " 0 to 16")
	require.Equal(t, "▁▂▂▃▅█ ", spark([]int{0, 1, 2, 4, 8, 16, -1}, 16))
}

func TestTopDrawsWhatItSawOnATerminalAndElsewhereOnlyIfAsked(t *testing.T) {
	w := cmdtest.World(t)
	holder := cmdtest.On(t, w, cmdtest.Sh(w.Path("l"), cmdtest.UntilEOF)...).Begun()
	tty := cmdtest.OnTerminal(t, w, cmdtest.Coorddemo(t), "top", "--every", "100ms", "--since", "3s", w.Path("l"))
	tty.Sees("holders ")
	tty.Sees("█")
	tty.Sees("3s ago")
	asked := cmdtest.On(t, w, "top", "--every", "100ms", "--since", "3s", w.Path("l"))
	for !strings.Contains(asked.Line(), "█") {
	}
	plain := cmdtest.On(t, w, "top", "--every", "100ms", w.Path("l"))
	for range 20 {
		require.NotContains(t, plain.Line(), "holders ")
	}
	holder.LetGo(5)
	for line := asked.Line(); !strings.ContainsAny(line, "|?") || !strings.Contains(line, "holders"); line = asked.Line() {
	}
	require.Equal(t, term.ExitUsage, cmdtest.On(t, w, "top", "--since", "3h", w.Path("l")).Exit())
}
