package term

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	eastasian "golang.org/x/text/width"
)

// Page is where a verb writes for people. A line has at most Columns columns; 0
// means no limit. [Streams.Finish] reports errors of writing.
type Page struct {
	io.Writer
	Columns int
}

// Page is the standard output, as wide as the terminal, or elsewhere as the
// variable COLUMNS says. Without it nothing is shortened: programs behind a
// pipe look for whole names.
func (s *Streams) Page() Page {
	if IsTerminal(s.Out) {
		columns, _ := Size(s.Out)
		return Page{s.Out, columns}
	}
	columns, _ := strconv.Atoi(os.Getenv("COLUMNS"))
	return Page{s.Out, max(0, columns)}
}

const (
	gap = 2 // spaces between two columns
	// narrowest is the width below which no column of a table is shortened.
	narrowest = 8
	// proseWidth is the least room to the right of a row for its prose; with
	// less room, the prose stands below.
	proseWidth = 40
)

// Table has rows of names and numbers, each on a line of its own, and prose
// about each row.
type Table struct {
	Heads []string // above the columns, if there are any
	About string   // above the prose
	Whole int      // the first Whole columns are not shortened
	rows  []row
}

type row struct {
	cells []string
	prose string // may have several lines
}

func (t *Table) Add(prose string, cells ...string) { t.rows = append(t.rows, row{cells, prose}) }

// Write writes the table. Where room is short, the longest cells are shortened
// in the middle, and prose is wrapped.
func (t *Table) Write(to Page) error {
	widths, longest := t.widths(to.Columns)
	right := 0 // where the prose begins, if it is next to the cells
	for _, w := range widths {
		right += w + gap
	}
	if to.Columns > 0 && right+min(longest, proseWidth) > to.Columns {
		right = 0
	}
	var text strings.Builder
	if len(t.Heads) > 0 {
		about := t.About
		if right == 0 {
			about = ""
		}
		row{t.Heads, about}.write(&text, widths, right, to.Columns)
	}
	for _, r := range t.rows {
		r.write(&text, widths, right, to.Columns)
	}
	_, err := io.WriteString(to, text.String())
	return err
}

// widths returns the widths of the columns, the widest narrowed until all fit,
// and the width of the longest line of prose.
func (t *Table) widths(columns int) (widths []int, longest int) {
	for _, r := range append(slices.Clone(t.rows), row{t.Heads, t.About}) {
		for i, cell := range r.cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Cells(cell))
		}
		for line := range strings.SplitSeq(r.prose, "\n") {
			longest = max(longest, Cells(line))
		}
	}
	over := gap * (len(widths) - 1)
	for _, w := range widths {
		over += w
	}
	for over -= columns; columns > 0 && over > 0; over-- {
		widest := t.Whole
		for i := range widths {
			if i > t.Whole && widths[i] > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= narrowest {
			break
		}
		widths[widest]--
	}
	return widths, longest
}

func (r row) write(to *strings.Builder, widths []int, right, columns int) {
	line := ""
	for i, cell := range r.cells {
		cell = Middle(cell, widths[i])
		line += cell + strings.Repeat(" ", widths[i]-Cells(cell)+gap)
	}
	if r.prose == "" || right == 0 {
		fmt.Fprintln(to, strings.TrimRight(line, " "))
		line, right = "", gap
	}
	if r.prose == "" {
		return
	}
	for _, words := range wrapped(r.prose, columns-right) {
		fmt.Fprintf(to, "%s%s\n", line+strings.Repeat(" ", right-Cells(line)), words)
		line = ""
	}
}

// Say writes a sentence that begins with a path.
func (to Page) Say(path, format string, args ...any) {
	said := fmt.Sprintf(format, args...)
	path = Plain(path)
	if to.Columns > 0 {
		path = Middle(path, max(narrowest, to.Columns/2, to.Columns-Cells(said)))
	}
	for i, line := range wrapped(path+said, to.Columns-gap) {
		if i > 0 {
			line = strings.Repeat(" ", gap) + line
		}
		fmt.Fprintln(to, line)
	}
}

// wrapped are the lines of a text, wrapped between words. A word that is longer
// than a line is shortened. Without a positive width lines stay as they are.
func wrapped(text string, columns int) (lines []string) {
	for line := range strings.SplitSeq(text, "\n") {
		if columns <= 0 || Cells(line) <= columns {
			lines = append(lines, line)
			continue
		}
		sofar := ""
		for word := range strings.SplitSeq(line, " ") {
			switch word = Middle(word, columns); {
			case sofar == "":
				sofar = word
			case Cells(sofar)+1+Cells(word) > columns:
				lines, sofar = append(lines, sofar), word
			default:
				sofar += " " + word
			}
		}
		lines = append(lines, sofar)
	}
	return lines
}

// Middle shortens a name in its middle to so many columns: names that belong
// together differ at their ends.
func Middle(name string, columns int) string {
	if Cells(name) <= columns {
		return name
	}
	runes := []rune(name)
	head, room := 0, (columns-1)/2
	for ; room >= cellsOf(runes[head]); head++ {
		room -= cellsOf(runes[head])
	}
	tail, room := len(runes), room+columns-1-(columns-1)/2
	for ; room >= cellsOf(runes[tail-1]); tail-- {
		room -= cellsOf(runes[tail-1])
	}
	return string(runes[:head]) + "…" + string(runes[tail:])
}

// Cells is how many columns a text takes on a terminal.
func Cells(text string) (n int) {
	for _, r := range text {
		n += cellsOf(r)
	}
	return n
}

func cellsOf(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch eastasian.LookupRune(r).Kind() {
	case eastasian.EastAsianWide, eastasian.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Cut cuts a line to so many columns.
func Cut(line string, columns int) string {
	if Cells(line) <= columns {
		return line
	}
	room := columns - 1
	for i, r := range line {
		room -= cellsOf(r)
		if room < 0 {
			return line[:i] + "…"
		}
	}
	return line
}

// NodeData is a node's data in JSON: text as it is, and other bytes in base 64,
// since JSON would replace them.
type NodeData struct {
	Data   *string `json:"data,omitempty"`
	Base64 []byte  `json:"data_base64,omitempty"`
}

func DataOf(data []byte) NodeData {
	if raw := NotText(data); raw != nil {
		return NodeData{Base64: raw}
	}
	text := string(data)
	return NodeData{Data: &text}
}

// NotText returns data that JSON cannot carry unchanged, and nil for other
// data.
func NotText(data []byte) []byte {
	if utf8.Valid(data) {
		return nil
	}
	return data
}
