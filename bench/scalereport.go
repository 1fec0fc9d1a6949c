package bench

import (
	"fmt"
	"strings"
)

// growth returns a table for each row and site, with a line for each size.
func (r *report) growth(string) (string, error) {
	var b strings.Builder
	for _, row := range scaleRows {
		fmt.Fprintf(&b, "### %s\n\n%s\n\n", row.title, row.about)
		for _, s := range row.sites {
			r.growthTable(&b, row, s)
		}
	}
	return b.String(), nil
}

func (r *report) growthTable(b *strings.Builder, row row, s *site) {
	head, made := []string{"N", s.title}, ""
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
			line := []string{digits(float64(row.sizes[i])), emphasis(who)}
			for _, column := range row.shows {
				line = append(line, c.show(column, ""))
			}
			lines = append(lines, line)
		}
	}
	if made == "" {
		return
	}
	tableHead(b, head)
	for _, line := range lines {
		tableLine(b, line)
	}
	fmt.Fprintf(b, "\n%s.\n\n", made)
	r.failures(b, row, s)
}
