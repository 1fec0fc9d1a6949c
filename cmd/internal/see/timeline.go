package see

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/history"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

// timeline draws the past of one path. Each character stands for the same
// length of time.
type timeline struct {
	past       *history.History
	path       string
	begin, end time.Time
}

func newTimeline(past *history.History, path string, now time.Time, since time.Duration) timeline {
	return timeline{past, path, now.Add(-since), now}
}

// What a character of a bar stands for. If a hold ended within its time, it
// shows that; else, if nobody held for part of it, it shows that.
const (
	barHeld    = '█'
	barNobody  = '·'
	barAtLooks = ':' // nobody held whenever a look was made
	barUnknown = '░' // between two looks
	barUnseen  = ' ' // no looks were made
)

// legend explains a bar.
const legend = "█ held · nobody : nobody at any look ░ not known\nended: | released B broken L lost C crashed ? not known how"

var endedAs = map[history.How]rune{
	history.Released: '|', history.Broken: 'B', history.Lost: 'L', history.Crashed: 'C', "": '?',
}

// inOrder has the characters of a bar by precedence, the highest first.
var inOrder = []rune{'B', 'L', 'C', '?', '|', barNobody, barHeld, barAtLooks, barUnknown, barUnseen}

const (
	mostBars   = 20 // of the keys of shards
	widestName = 24
	widestBar  = 120
)

// write draws a bar for each lane of the path, and a line each for the number
// of items and of waiters.
func (t timeline) write(to term.Page) {
	lanes, names := map[string][]*history.Interval{}, []string(nil)
	for _, i := range t.past.Intervals() {
		if i.Path != t.path || !i.Lasts() && i.End.To.Before(t.begin) {
			continue
		}
		if lanes[i.Lane] == nil {
			names = append(names, i.Lane)
		}
		lanes[i.Lane] = append(lanes[i.Lane], i)
	}
	slices.Sort(names)
	items, mostItems := t.depth(func(p history.Point) int { return p.Items })
	waiting, mostWaiting := t.depth(func(p history.Point) int { return p.Waiting })
	label := func(name string) string { return term.Middle(cmp.Or(term.Plain(name), "holders"), widestName) }
	widest := len("holders")
	for _, name := range names {
		widest = max(widest, term.Cells(label(name)))
	}
	count := min(widestBar, cmp.Or(to.Columns, 80)-widest-2-len(" 0 to 100000"))
	if count < 1 || len(names) == 0 && mostItems == 0 && mostWaiting == 0 {
		return
	}
	draw := func(name, bar, about string) {
		fmt.Fprintf(to, "%s%s  %s%s\n", name, strings.Repeat(" ", widest-term.Cells(name)), bar, about)
	}
	for _, name := range names[:min(len(names), mostBars)] {
		draw(label(name), t.bar(lanes[name], count), "")
	}
	if more := len(names) - mostBars; more > 0 {
		draw("", fmt.Sprintf("%d more", more), "")
	}
	if mostItems > 0 {
		draw("items", spark(items(count), mostItems), fmt.Sprintf(" 0 to %d", mostItems))
	}
	if mostWaiting > 0 {
		draw("waiting", spark(waiting(count), mostWaiting), fmt.Sprintf(" 0 to %d", mostWaiting))
	}
	ago := t.end.Sub(t.begin).String() + " ago"
	draw("", ago+strings.Repeat(" ", max(1, count-len(ago)-len("now")))+"now", "")
	if len(names) > 0 {
		fmt.Fprintln(to, legend)
	}
	fmt.Fprintln(to)
}

// at is the index of the character, of count, that an instant belongs to.
func (t timeline) at(then time.Time, count int) int {
	return int(float64(then.Sub(t.begin)) / float64(t.end.Sub(t.begin)) * float64(count))
}

// bar draws a lane's intervals.
func (t timeline) bar(all []*history.Interval, count int) string {
	bar := []rune(strings.Repeat(string(barUnseen), count))
	mark := func(r rune, from, to time.Time) {
		if to.Before(t.begin) || to.Before(from) {
			return
		}
		for i := max(0, t.at(from, count)); i <= min(count-1, t.at(to, count)); i++ {
			if slices.Index(inOrder, r) < slices.Index(inOrder, bar[i]) {
				bar[i] = r
			}
		}
	}
	for _, run := range t.past.Runs() {
		mark(barUnknown, run.From, run.To)
	}
	for _, i := range all {
		is, until := barHeld, i.End.From
		switch {
		case i.Nobody && i.AtLooks:
			is = barAtLooks
		case i.Nobody:
			is = barNobody
		}
		if i.Lasts() {
			until = t.past.Seen(t.path)
		} else if !i.Nobody {
			mark(endedAs[i.How], i.End.To, i.End.To)
		}
		mark(is, i.Begin.To, until)
	}
	return string(bar)
}

// depth follows a number in the path's points. It returns a function for its
// largest value in the time of each of count characters, -1 where that is not
// known, and the largest value of all.
func (t timeline) depth(of func(history.Point) int) (values func(count int) []int, most int) {
	var points []history.Point
	for _, c := range t.past.Chunks() {
		if c.Path == t.path {
			points = append(points, c.Points...)
		}
	}
	runs := t.past.Runs()
	each := func(do func(value int, from, to time.Time)) {
		for i, p := range points {
			until := t.end
			for _, run := range runs {
				if !run.To.Before(p.At) {
					until = run.To
					break
				}
			}
			if i+1 < len(points) && points[i+1].At.Before(until) {
				until = points[i+1].At
			}
			if !until.Before(t.begin) {
				do(of(p), p.At, until)
			}
		}
	}
	each(func(value int, _, _ time.Time) { most = max(most, value) })
	return func(count int) []int {
		found := slices.Repeat([]int{-1}, count)
		each(func(value int, from, to time.Time) {
			for i := max(0, t.at(from, count)); i <= min(count-1, t.at(to, count)); i++ {
				found[i] = max(found[i], value)
			}
		})
		return found
	}, most
}

// spark draws numbers as bars next to each other. Only 0 has the lowest bar.
func spark(values []int, most int) string {
	bars := []rune("▁▂▃▄▅▆▇█")
	var text strings.Builder
	for _, v := range values {
		switch {
		case v < 0:
			text.WriteRune(barUnseen)
		default:
			text.WriteRune(bars[(v*(len(bars)-1)+most-1)/most])
		}
	}
	return text.String()
}
