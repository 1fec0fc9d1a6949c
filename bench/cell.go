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

// compare notes the ratios to other contenders in the same case: the median of
// what c has in the place of the other's 1, repetition by repetition.
func (c *cell) compare(others []*cell) {
	c.Ratios = map[string]figures{}
	for _, other := range others {
		ratios := figures{}
		for name := range c.Figures {
			var all []float64
			for i, s := range c.samples {
				if mine, ok := s[name]; ok && other.samples[i][name] > 0 {
					all = append(all, mine/other.samples[i][name])
				}
			}
			if len(all) > 0 {
				ratios[name] = middle(all)
			}
		}
		c.Ratios[other.Contender] = ratios
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

// keep replaces in a file of cells those of the rows and sites that were
// measured, and returns all.
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
	text, err = json.MarshalIndent(all, "", " ")
	if err != nil {
		return nil, err
	}
	return all, os.WriteFile(file, append(text, '\n'), 0o644)
}
