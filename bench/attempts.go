package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// patience is how long an attempt waits for a lock that is not released.
const patience = 25 * time.Millisecond

// attempt is t.count attempts by one session at a lock that another holds.
func attempt(s *sessions, t task) (measurement, error) {
	all, err := s.openAll(t)
	if err == nil {
		err = s.acquire(all[1], t.path+"/lock")
	}
	if err != nil {
		return nil, err
	}
	<-time.After(2 * patience) // the holder watches its node by then
	lock, err := all[0].lock(t.path + "/lock")
	return func() (figures, error) {
		begun := time.Now()
		for range t.count {
			trying, cancel := context.WithTimeout(s.ctx, patience)
			_, err := lock(trying)
			cancel()
			if err == nil {
				return nil, errors.New("a held lock was acquired")
			}
			<-time.After(patience) // the deletion goes on
		}
		return figures{"ops": float64(t.count), "seconds": time.Since(begun).Seconds()}, nil
	}, err
}

// turnover is a session that receives and acknowledges, and one that puts as
// many, while t.count items are in the queue.
func turnover(s *sessions, t task) (measurement, error) {
	all, err := s.openAll(t)
	if err != nil {
		return nil, err
	}
	put, _, err := all[0].queue(t.path + "/queue")
	if err == nil {
		err = put(s.ctx, make([]byte, itemSize)) // makes the directories
	}
	if err == nil {
		err = together(t.count-1, func(int) error { return put(s.ctx, make([]byte, itemSize)) })
	}
	_, receive, receiveErr := all[1].queue(t.path + "/queue")
	if err = errors.Join(err, receiveErr); err != nil {
		return nil, fmt.Errorf("a queue of %d: %w", t.count, err)
	}
	return func() (figures, error) { return receiveAll(s, t, put, receive) }, nil
}

// receiveAll receives the first item, which lists the queue, and then measures.
func receiveAll(s *sessions, t task, put put, receive receive) (figures, error) {
	begun := time.Now()
	first, err := receive(s.ctx)
	if err != nil {
		return nil, err
	}
	f := figures{"first": time.Since(begun).Seconds()}
	room := make(chan struct{}, backlog)
	s.work(func(ctx context.Context) error { return produce(ctx, put, room) })
	n := 0
	for begun = time.Now(); time.Since(begun) < t.during; n++ {
		if err := first(s.ctx); err != nil {
			return nil, err
		}
		room <- struct{}{}
		if first, err = receive(s.ctx); err != nil {
			return nil, err
		}
	}
	f["ops"], f["seconds"] = float64(n), time.Since(begun).Seconds()
	return f, s.failure()
}

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
	return all, os.WriteFile(file, []byte("[\n"+strings.Join(lines, ",\n")+"\n]\n"), 0o644)
}
