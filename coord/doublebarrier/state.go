package doublebarrier

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/zkcoord/zkcoord/coord"
)

// format is the version of the content of ready.
const format = 1

// round is one use of the barrier. Its members are the nodes with a sequence
// number from First up to but not including Next. A round takes the oldest
// nodes there are, so any other node that had such a number is gone.
type round struct {
	Number  int64 `json:"round"` // from 1; 0 when there was none yet
	First   int32 `json:"first"`
	Next    int32 `json:"next"`
	Missing []int `json:"missing,omitempty"` // once it is over: who was not seen to finish
	Data    bool  `json:"data,omitempty"`    // the members have brought some
	Results bool  `json:"results,omitempty"` // once it is over: the members have left some

	// Reasons say, once it is over, why members are missing. Older versions
	// write none, and drop them.
	Reasons map[int]string `json:"reasons,omitempty"`
}

// has reports whether a node that is there is a member of the round; then that
// member is alive.
func (r round) has(c coord.Contender) bool { return r.First <= c.Sequence && c.Sequence < r.Next }

// state is the content of ready: one line of JSON and, while a round is open,
// one line more for each of its members. It is changed in three ways only, each
// time for the version it was read in: a round is opened, or closed, or the
// number of members is set when nobody is there.
type state struct {
	Format int `json:"format"`
	Size   int `json:"size"`
	round
	Open    bool     `json:"open"`
	Past    []round  `json:"past,omitempty"` // rounds whose outcome a member may not have read yet
	Members []string `json:"-"`              // of the open round, by age
}

func encode(s state) []byte {
	head, _ := json.Marshal(s) // cannot fail: numbers and a flag
	return []byte(strings.Join(append([]string{string(head)}, s.Members...), "\n"))
}

func decode(data []byte) (state, error) {
	var s state
	head, members, _ := strings.Cut(string(data), "\n")
	err := json.Unmarshal([]byte(head), &s)
	if members != "" {
		s.Members = strings.Split(members, "\n")
	}
	if err != nil || s.Format != format || s.Size < 1 || len(s.Members) > s.Size || s.Open != (len(s.Members) > 0) {
		return state{}, fmt.Errorf(
			"%w: ready was not written by this recipe; Curator's and Kazoo's double barriers need a path of their own",
			coord.ErrForeign)
	}
	return s, nil
}

// alive reports whether a member of the round is left, given who is there.
func (r round) alive(line []coord.Contender) bool { return slices.ContainsFunc(line, r.has) }

// opening returns the state in which the next round is open, if least or more
// members wait. It takes the oldest, and keeps the outcomes of rounds of which
// a member is left.
func (s state) opening(line []coord.Contender, least int) (next state, enough bool) {
	from := slices.IndexFunc(line, func(c coord.Contender) bool { return c.Sequence >= s.Next })
	if from < 0 || len(line)-from < least {
		return state{}, false
	}
	chosen := line[from:min(from+s.Size, len(line))]
	next = state{Format: s.Format, Size: s.Size, Open: true}
	next.round = round{Number: s.Number + 1, First: s.Next, Next: chosen[len(chosen)-1].Sequence + 1}
	for _, c := range chosen {
		next.Members = append(next.Members, c.Name)
	}
	past := slices.Clone(s.Past)
	if !s.Open && s.Number > 0 {
		past = append(past, s.round)
	}
	next.Past = slices.DeleteFunc(past, func(r round) bool { return !r.alive(line) })
	return next, true
}

// closing returns the state in which the open round is over.
func (s state) closing(missing []int, reasons map[int]string) state {
	s.Open, s.Members, s.Missing, s.Reasons = false, nil, missing, reasons
	return s
}

// resized returns the state for another number of members, when nobody is
// there. All members of a round that is still open are missing. Older outcomes
// are dropped: nobody is left to ask for them.
func (s state) resized(size int) state {
	if s.Open {
		missing := make([]int, len(s.Members))
		for i := range missing {
			missing[i] = i
		}
		s = s.closing(missing, nil)
	}
	s.Size, s.Past = size, nil
	return s
}

// outcome finds how a round ended, if it has.
func (s state) outcome(number int64) (round, bool) {
	if s.Number == number && !s.Open {
		return s.round, true
	}
	i := slices.IndexFunc(s.Past, func(r round) bool { return r.Number == number })
	if i < 0 {
		return round{}, false
	}
	return s.Past[i], true
}
