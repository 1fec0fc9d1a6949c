package slots

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

// Kind is the kind of a held number, for programs that look at one.
const Kind string = "slot"

func name(number int) string { return strconv.Itoa(number) }

// numbers are in order.
type numbers []int

// parse reads the numbers among the names in a directory.
func parse(names []string) (all numbers) {
	for _, is := range names {
		if number, err := strconv.Atoi(is); err == nil && number >= 0 && name(number) == is {
			all = append(all, number)
		}
	}
	slices.Sort(all)
	return all
}

func (all numbers) has(number int) bool {
	_, found := slices.BinarySearch(all, number)
	return found
}

// below returns the numbers that are less than n.
func (all numbers) below(n int) numbers {
	i, _ := slices.BinarySearch(all, n)
	return all[:i]
}

func children(ctx context.Context, c *coord.Client, dir string) (numbers, error) {
	names, err := c.Children(ctx, dir)
	if errors.Is(err, coord.ErrNoNode) {
		return nil, nil
	}
	return parse(names), err
}

// entry is what the node of a number says. It is written by those who take the
// number, and while nobody holds it. So its version proves whose the number is.
type entry struct {
	Owner    string        `json:"owner,omitempty"`
	Cooldown time.Duration `json:"cooldown,omitempty"` // in ns
	Away     bool          `json:"away,omitempty"`     // the owner, since the node was written
}

func (e entry) encode() []byte {
	if e == (entry{}) {
		return nil
	}
	data, _ := json.Marshal(e) // never fails
	return data
}

// decode reads an entry. Data that are none belong to nobody.
func decode(data []byte) (e entry) {
	if json.Unmarshal(data, &e) != nil {
		return entry{}
	}
	return e
}
