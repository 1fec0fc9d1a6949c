package bench

import (
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// report is what is known of all contenders.
type report struct{ cells []*cell }

// find returns an empty cell for what was not measured.
func (r *report) find(s *site, row row, name, who string) *cell {
	i := slices.IndexFunc(r.cells, func(c *cell) bool {
		return c.Site == s.name && c.Row == row.name && c.Case == name && c.Contender == who
	})
	if i < 0 {
		return &cell{}
	}
	return r.cells[i]
}

// Marks of the part of the document that a run writes.
const (
	generatedBegin = "<!-- Written by the benchmarks: begin. -->\n"
	generatedEnd   = "<!-- Written by the benchmarks: end. -->\n"
)

// write puts what show makes of the cells into the document between the marks,
// and charts and data next to it: what was measured, and what was known of the
// rest. A document that is not there is begun.
func write(document, data string, measured []*cell, show func(r *report, folder string) (string, error)) error {
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
	all, err := keep(filepath.Join(folder, data), measured)
	if err != nil {
		return err
	}
	tables, err := show(&report{all}, folder)
	if err != nil {
		return err
	}
	return os.WriteFile(document, []byte(before+generatedBegin+"\n"+tables+generatedEnd+after), 0o644)
}

// tables draws the charts into the folder and returns the text that shows them.
func (r *report) tables(folder string) (string, error) {
	var b strings.Builder
	r.ahead(&b)
	usual := r.usual(&b)
	for _, row := range rows {
		var parts strings.Builder
		if err := r.part(&parts, row, row.sites[0], folder, usual); err != nil {
			return "", err
		}
		r.elsewhere(&parts, row)
		if parts.Len() > 0 {
			fmt.Fprintf(&b, "## %s\n\n%s\n\n%s", row.title, row.about, parts.String())
		}
	}
	return b.String(), nil
}

// usual writes what most figures come from, and returns it.
func (r *report) usual(b *strings.Builder) (usual string) {
	times := map[string]int{}
	for _, c := range r.cells {
		times[c.Run]++
		if times[c.Run] > times[usual] || times[c.Run] == times[usual] && c.Run > usual {
			usual = c.Run
		}
	}
	if usual != "" {
		fmt.Fprintf(b, "%s, unless a table says otherwise.\n\n", usual)
	}
	return usual
}

// part is a row at a site: its chart, its figures, and what each operation
// costs in the largest of its cases.
func (r *report) part(b *strings.Builder, row row, s *site, folder, usual string) error {
	_, names := row.cases()
	var who []string
	for _, name := range row.who {
		if r.find(s, row, names[0], name).Run != "" {
			who = append(who, name)
		}
	}
	if len(who) == 0 {
		return nil
	}
	image := row.name + "-" + s.name + ".svg"
	if err := r.draw(filepath.Join(folder, image), row, s, who); err != nil {
		return err
	}
	fmt.Fprintf(b, "![Chart](benchmarks/%s)\n\n", image)
	r.figuresTable(b, row, s, who)
	if run := r.find(s, row, names[0], who[0]).Run; run != usual {
		fmt.Fprintf(b, "%s.\n\n", run)
	}
	return nil
}

// elsewhere is a table of a row's other sites: of each the first figure in the
// largest of the row's cases.
func (r *report) elsewhere(b *strings.Builder, row row) {
	_, names := row.cases()
	kase, column := names[len(names)-1], row.shows[0]
	var there []*site
	head := []string{strings.TrimPrefix(kase+": "+column.title, ": ")}
	for _, s := range row.sites[1:] {
		if r.find(s, row, kase, zkcoord).Run != "" {
			there = append(there, s)
			head = append(head, fmt.Sprintf("%s (× %s)", s.title, row.baseAt(s)))
		}
	}
	if len(there) == 0 {
		return
	}
	var lines [][]string
	for _, name := range row.who {
		line := []string{emphasis(name)}
		for _, s := range there {
			line = append(line, r.find(s, row, kase, name).show(column, row.baseAt(s)))
		}
		lines = append(lines, line)
	}
	table(b, head, lines)
	for _, s := range there {
		r.failures(b, row, s)
	}
}

func (r row) baseAt(s *site) string {
	if s.delay > 0 && r.linkBase != "" {
		return r.linkBase
	}
	return r.base
}

func (r *report) figuresTable(b *strings.Builder, row row, s *site, who []string) {
	_, names := row.cases()
	head := []string{fmt.Sprintf("%s (× %s)", s.title, row.base)}
	for _, name := range names {
		for _, column := range row.shows {
			head = append(head, strings.TrimPrefix(name+": "+column.title, ": "))
		}
	}
	var costs []column
	if row.task.work != "hold" && row.task.work != "wait" {
		costs = []column{requests, clientCPU, serverCPU}
	}
	for _, column := range costs {
		head = append(head, column.title)
	}
	var lines [][]string
	for _, name := range who {
		line := []string{emphasis(name)}
		for _, kase := range names {
			for _, column := range row.shows {
				line = append(line, r.find(s, row, kase, name).show(column, row.base))
			}
		}
		last := r.find(s, row, names[len(names)-1], name)
		for _, column := range costs {
			text := "–"
			if n := last.Figures[column.figure] * column.scale; n > 0 {
				text = digits(n)
			}
			line = append(line, text)
		}
		lines = append(lines, line)
	}
	table(b, head, lines)
	r.failures(b, row, s)
}

func (r *report) failures(b *strings.Builder, row row, s *site) {
	for _, c := range r.cells {
		if c.Site == s.name && c.Row == row.name && c.Failed > 0 {
			fmt.Fprintf(b, "%s failed in %d runs %s.\n\n", c.Contender, c.Failed, c.Case)
		}
	}
}

// show is a figure and its ratio.
func (c *cell) show(column column, base string) string {
	n, ok := c.Figures[column.figure]
	if !ok {
		return "–"
	}
	text := digits(n * column.scale)
	if ratio, ok := c.Ratios[base][column.figure]; ok {
		text += fmt.Sprintf(" (%.2f)", ratio)
	}
	return text
}

// ahead lists where another does better than zkcoord, limits and the weaker
// class apart.
func (r *report) ahead(b *strings.Builder) {
	fmt.Fprintf(b, "## Where another is ahead\n\n")
	for _, row := range rows {
		for _, s := range row.sites {
			for _, c := range r.cells {
				if c.Row != row.name || c.Site != s.name || slices.Contains(apart, c.Contender) {
					continue
				}
				for _, column := range row.shows {
					ratio := c.Ratios[zkcoord][column.figure]
					if column.less && ratio > 0 {
						ratio = 1 / ratio
					}
					if ratio > 1.02 {
						name := strings.TrimPrefix(c.Case+", ", ", ") + column.title
						fmt.Fprintf(b, "- %s, %s, %s: %s, %.2f times.\n", row.title, s.title, name, c.Contender, ratio)
					}
				}
			}
		}
	}
	b.WriteString("\n")
}

// apart are contenders that are not compared with zkcoord.
var apart = []string{limit, pipelined, acknowledged, bareBatches, zkcoord, local, lingering, batches, redis}

func emphasis(name string) string {
	if name == zkcoord {
		return "**" + name + "**"
	}
	return name
}

func table(b *strings.Builder, head []string, lines [][]string) {
	for i, cells := range slices.Concat([][]string{head}, lines) {
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|" + strings.Repeat("---|", len(head)) + "\n")
		}
	}
	b.WriteString("\n")
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

// colours of the contenders, which keep theirs in all charts.
var colours = map[string]color.RGBA{
	limit:     {0xbb, 0xbb, 0xbb, 0xff},
	pipelined: {0x88, 0x88, 0x88, 0xff},
	zkcoord:   {0x1b, 0x6e, 0xc2, 0xff},
	local:     {0x0f, 0x3d, 0x70, 0xff},
	lingering: {0x07, 0x20, 0x40, 0xff},

	acknowledged: {0x88, 0x88, 0x88, 0xff},
	bareBatches:  {0x88, 0x88, 0x88, 0xff},
	batches:      {0x07, 0x20, 0x40, 0xff},

	zkLock:  {0x66, 0xb2, 0xe8, 0xff},
	curator: {0xe0, 0x7b, 0x39, 0xff},
	kazoo:   {0x3d, 0x9a, 0x50, 0xff},
	etcd:    {0x8a, 0x5f, 0xb5, 0xff},
	redis:   {0xd6, 0xa0, 0xa0, 0xff},
}

// draw makes a chart of a row's first column: a group of bars for each case.
func (r *report) draw(file string, row row, s *site, who []string) error {
	p := plot.New()
	_, names := row.cases()
	shown := row.shows[0]
	p.Title.Text = row.title + ", " + s.title
	p.Y.Label.Text = shown.title
	p.Title.Padding, p.Y.Min = vg.Points(8), 0
	p.Legend.Top = true
	p.NominalX(names...)
	groups := float64(len(names))
	p.X.Min, p.X.Max = -0.5, groups-0.5+0.4*groups // with room for the legend
	width := vg.Points(300 / (groups * float64(len(who)+1)))
	for i, name := range who {
		bars := make(plotter.Values, len(names))
		for k, kase := range names {
			bars[k] = r.find(s, row, kase, name).Figures[shown.figure] * shown.scale
		}
		chart, err := plotter.NewBarChart(bars, width)
		if err != nil {
			return err
		}
		chart.Color, chart.LineStyle.Width = colours[name], 0
		chart.Offset = width * vg.Length(float64(i)-float64(len(who)-1)/2)
		p.Add(chart)
		p.Legend.Add(name, chart)
	}
	return p.Save(16*vg.Centimeter, 8*vg.Centimeter, file)
}

// growth returns a table for each row and site, with a line for each size.
func (r *report) growth(string) (string, error) {
	var b strings.Builder
	usual := r.usual(&b)
	for _, row := range scaleRows {
		fmt.Fprintf(&b, "### %s\n\n%s\n\n", row.title, row.about)
		for _, s := range row.sites {
			r.growthTable(&b, row, s, usual)
		}
	}
	return b.String(), nil
}

func (r *report) growthTable(b *strings.Builder, row row, s *site, usual string) {
	head, made := []string{"N", s.title}, ""
	alone := len(row.who) == 1
	if alone {
		head = []string{"N, " + s.title}
	}
	for _, column := range row.shows {
		head = append(head, column.title)
	}
	var lines [][]string
	_, names := row.cases()
	for i, name := range names {
		for _, who := range row.who {
			c := r.find(s, row, name, who)
			if c.Run == "" {
				continue
			}
			made = c.Run
			line := []string{digits(float64(row.sizes[i]))}
			if !alone {
				line = append(line, emphasis(who))
			}
			for _, column := range row.shows {
				line = append(line, c.show(column, ""))
			}
			lines = append(lines, line)
		}
	}
	if made == "" {
		return
	}
	table(b, head, lines)
	if made != usual {
		fmt.Fprintf(b, "%s.\n\n", made)
	}
	r.failures(b, row, s)
}
