package bench

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// cell is what one contender did in one case of a row at one site.
type cell struct {
	Site, Row, Case, Contender string

	Run     string             // when, and how often
	Failed  int                `json:",omitempty"` // repetitions
	Figures figures            // medians
	Ratios  map[string]figures // to other contenders

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

// compare notes c's ratios to the cells of the same case that the row compares
// with: the median over the repetitions of c's figure divided by the other's.
func (c *cell) compare(r row, all []*cell) {
	c.Ratios = map[string]figures{}
	for _, other := range all {
		if other == c || !slices.Contains([]string{r.base, r.linkBase, zkcoord}, other.Contender) {
			continue
		}
		ratios := figures{}
		for _, column := range r.shows {
			if within := c.over(other, column.figure); len(within) > 0 {
				ratios[column.figure] = middle(within)
			}
		}
		c.Ratios[other.Contender] = ratios
	}
}

// over gives c's figure as a multiple of the other's in each repetition.
func (c *cell) over(other *cell, name string) (all []float64) {
	for i, s := range c.samples {
		if mine, ok := s[name]; ok && other.samples[i][name] > 0 {
			all = append(all, mine/other.samples[i][name])
		}
	}
	return all
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

// MarshalJSON writes as many digits as mean something.
func (f figures) MarshalJSON() ([]byte, error) {
	rounded := map[string]json.Number{}
	for name, n := range f {
		if !math.IsInf(n, 0) && !math.IsNaN(n) {
			rounded[name] = json.Number(strconv.FormatFloat(n, 'g', 4, 64))
		}
	}
	return json.Marshal(rounded)
}

// keep replaces the cells of the measured rows and sites in a file with one
// cell a line, and returns all cells.
func keep(file string, measured []*cell) (all []*cell, err error) {
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("bench: %s: %w", file, err)
	}
	all = slices.DeleteFunc(all, func(old *cell) bool {
		return slices.ContainsFunc(measured, func(c *cell) bool { return c.Site == old.Site && c.Row == old.Row })
	})
	all = append(all, measured...)
	slices.SortStableFunc(all, func(a, b *cell) int {
		return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.Site, b.Site))
	})
	lines := make([]string, len(all))
	for i, c := range all {
		line, err := json.Marshal(c)
		if err != nil {
			return nil, err
		}
		lines[i] = string(line)
	}
	text = []byte("[\n" + strings.Join(lines, ",\n") + "\n]\n")
	all = nil // what is shown is what is kept
	return all, errors.Join(json.Unmarshal(text, &all), os.WriteFile(file, text, 0o644))
}
