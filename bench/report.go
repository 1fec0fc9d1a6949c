package bench

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// cell is what one contender did in one case of a row at one site.
type cell struct {
	Site, Row, Case, Contender string
	Failed                     int     // repetitions
	Figures                    figures // medians

	samples []figures // by repetition, nil if it failed
	counted figures   // in the repetition that counts
}

// sum takes the medians. What is counted comes from the repetition that does
// so, unless all did.
func (c *cell) sum() {
	c.Figures = figures{}
	for _, s := range append([]figures{c.counted}, c.samples...) {
		for name := range s {
			if all := values(c.samples, name); len(all) > 0 {
				c.Figures[name] = middle(all)
			} else {
				c.Figures[name] = s[name]
			}
		}
	}
}

func values(samples []figures, name string) (all []float64) {
	for _, s := range samples {
		if n, ok := s[name]; ok {
			all = append(all, n)
		}
	}
	return all
}

func middle(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	if n := len(all); n%2 == 0 {
		return (all[n/2-1] + all[n/2]) / 2
	}
	return all[len(all)/2]
}

// ratio is the median of what c has in the place of the base's 1, repetition by
// repetition.
func (c *cell) ratio(base *cell, name string) (float64, bool) {
	var all []float64
	for i, s := range c.samples {
		if mine, ok := s[name]; ok && i < len(base.samples) && base.samples[i][name] > 0 {
			all = append(all, mine/base.samples[i][name])
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	return middle(all), true
}

// report is the outcome of a run.
type report struct {
	plan  plan
	begun time.Time
	took  time.Duration
	cells []*cell
}

func (r *report) find(s *site, row row, name, who string) *cell {
	i := slices.IndexFunc(r.cells, func(c *cell) bool {
		return c.Site == s.name && c.Row == row.name && c.Case == name && c.Contender == who
	})
	if i < 0 {
		return nil
	}
	return r.cells[i]
}

// Marks of the part of the document that a run writes.
const (
	generatedBegin = "<!-- Written by the benchmarks: begin. -->\n"
	generatedEnd   = "<!-- Written by the benchmarks: end. -->\n"
)

// write puts the tables into the document between the marks, and the charts
// beside it. A document that is not there is begun.
func (r *report) write(document string) error {
	folder := filepath.Join(filepath.Dir(document), "benchmarks")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	text, err := os.ReadFile(document)
	if os.IsNotExist(err) {
		text, err = []byte("# Benchmarks\n\n"+generatedBegin+generatedEnd), nil
	}
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), generatedBegin)
	_, after, foundEnd := strings.Cut(rest, generatedEnd)
	if !found || !foundEnd {
		return fmt.Errorf("bench: %s has no marks for what a run writes", document)
	}
	tables, err := r.tables(folder)
	if err != nil {
		return err
	}
	return os.WriteFile(document, []byte(before+generatedBegin+"\n"+tables+generatedEnd+after), 0o644)
}

// tables draws the charts into the folder and returns the text that shows them.
func (r *report) tables(folder string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s, %s: %d processors for clients and servers together, %d repetitions of %v each, %v in all.\n\n",
		r.begun.Format("2 January 2006"), runtime.Version(), runtime.NumCPU(),
		r.plan.repetitions, r.plan.during, r.took.Round(time.Minute))
	r.ahead(&b)
	for _, row := range rows {
		var parts strings.Builder
		for _, s := range row.sites {
			if err := r.part(&parts, row, s, folder); err != nil {
				return "", err
			}
		}
		if parts.Len() > 0 {
			fmt.Fprintf(&b, "## %s\n\n%s\n\n%s", row.title, row.about, parts.String())
		}
	}
	return b.String(), nil
}

// part is a row at a site: its chart, its figures, and what each operation
// costs in the largest of its cases.
func (r *report) part(b *strings.Builder, row row, s *site, folder string) error {
	_, names := row.cases()
	var who []string
	for _, name := range row.who {
		if c := r.find(s, row, names[0], name); c != nil {
			who = append(who, name)
		}
	}
	if len(who) == 0 {
		return nil
	}
	base := row.baseAt(s)
	fmt.Fprintf(b, "### %s: %s\n\n", row.title, s.title)
	image := row.name + "-" + s.name + ".svg"
	if err := r.draw(filepath.Join(folder, image), row, s, who); err != nil {
		return err
	}
	fmt.Fprintf(b, "![%s](benchmarks/%s)\n\n", row.title, image)
	r.figuresTable(b, row, s, who, base)
	if row.task.work != "hold" && row.task.work != "wait" {
		r.costsTable(b, row, s, who, names[len(names)-1])
	}
	return nil
}

func (r row) baseAt(s *site) string {
	if s.delay > 0 && r.linkBase != "" {
		return r.linkBase
	}
	return r.base
}

func (r *report) figuresTable(b *strings.Builder, row row, s *site, who []string, base string) {
	_, names := row.cases()
	var head []string
	for _, name := range names {
		for _, column := range row.shows {
			head = append(head, strings.TrimPrefix(name+": "+column.title, ": "))
		}
	}
	tableHead(b, append([]string{"(× " + base + ")"}, head...))
	for _, name := range who {
		line := []string{emphasis(name)}
		for _, kase := range names {
			c, against := r.find(s, row, kase, name), r.find(s, row, kase, base)
			for _, column := range row.shows {
				line = append(line, c.show(column, against))
			}
		}
		tableLine(b, line)
	}
	b.WriteString("\n")
	for _, c := range r.cells {
		if c.Site == s.name && c.Row == row.name && c.Failed > 0 {
			fmt.Fprintf(b, "%s failed in %d of %d runs %s.\n\n", c.Contender, c.Failed, r.plan.repetitions+1, c.Case)
		}
	}
}

// show is a figure and its ratio.
func (c *cell) show(column column, base *cell) string {
	n, ok := c.Figures[column.figure]
	if !ok {
		return "–"
	}
	text := digits(n * column.scale)
	if ratio, ok := c.ratio(base, column.figure); ok && c != base {
		text += fmt.Sprintf(" (%.2f)", ratio)
	}
	return text
}

func (r *report) costsTable(b *strings.Builder, row row, s *site, who []string, kase string) {
	columns := []column{
		{title: "requests", figure: "requests", scale: 1},
		{title: "answers and events", figure: "answers", scale: 1},
		{title: "bytes sent", figure: "sent", scale: 1},
		{title: "bytes received", figure: "got", scale: 1},
		{title: "client CPU, µs", figure: "client", scale: 1e6},
		{title: "server CPU, µs", figure: "server", scale: 1e6},
	}
	head := []string{strings.TrimPrefix(kase+": each operation", ": ")}
	for _, column := range columns {
		head = append(head, column.title)
	}
	tableHead(b, head)
	for _, name := range who {
		c := r.find(s, row, kase, name)
		line := []string{emphasis(name)}
		for _, column := range columns {
			text := "–"
			if n := c.Figures[column.figure] * column.scale; n > 0 {
				text = digits(n)
			}
			line = append(line, text)
		}
		tableLine(b, line)
	}
	b.WriteString("\n")
}

// ahead lists where another is faster than zkcoord, limits and the weaker class
// apart.
func (r *report) ahead(b *strings.Builder) {
	fmt.Fprintf(b, "## Where another is faster\n\n")
	for _, c := range r.cells {
		if slices.Contains([]string{limit, pipelined, zkcoord, local, lingering, redis}, c.Contender) {
			continue
		}
		row := rows[slices.IndexFunc(rows, func(x row) bool { return x.name == c.Row })]
		s := sites[slices.IndexFunc(sites, func(x *site) bool { return x.name == c.Site })]
		us := r.find(s, row, c.Case, zkcoord)
		for _, column := range row.shows {
			ratio, ok := c.ratio(us, column.figure)
			if column.less && ratio > 0 {
				ratio = 1 / ratio
			}
			if ok && ratio > 1.02 {
				fmt.Fprintf(b, "- %s, %s: %s has %.2f times zkcoord's speed%s\n", row.title, s.title, c.Contender, ratio, suffix(c.Case, column))
			}
		}
	}
	b.WriteString("\n")
}

func suffix(kase string, column column) string {
	return " (" + strings.TrimPrefix(kase+"; ", "; ") + column.title + ")."
}

func emphasis(name string) string {
	if name == zkcoord {
		return "**" + name + "**"
	}
	return name
}

func tableHead(b *strings.Builder, head []string) {
	tableLine(b, head)
	tableLine(b, slices.Repeat([]string{"---"}, len(head)))
}

func tableLine(b *strings.Builder, cells []string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// digits shows three digits that mean something, with commas in thousands.
func digits(n float64) string {
	switch {
	case n == 0:
		return "0"
	case math.Abs(n) < 100:
		return fmt.Sprintf("%.3g", n)
	}
	text := fmt.Sprintf("%.0f", n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
