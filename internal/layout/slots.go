package layout

import (
	"strconv"

	"github.com/zkcoord/zkcoord/coord"
)

// SlotNodes is where the nodes of slots are, given their path.
type SlotNodes string

// Numbers is the directory of what is known of each number.
func (s SlotNodes) Numbers() string { return string(s) + "/numbers" }

// Number is the node that says what is known of a number.
func (s SlotNodes) Number(n int) string { return s.Numbers() + "/" + strconv.Itoa(n) }

// Held is the directory of the nodes of those who hold numbers.
func (s SlotNodes) Held() string { return string(s) + "/held" }

// Holder is the node of the holder of a number.
func (s SlotNodes) Holder(n int) string { return s.Held() + "/" + strconv.Itoa(n) }

// Line is the line of those who wait for a number: a mutex.
func (s SlotNodes) Line() coord.Line {
	return coord.Line{Dir: string(s) + "/line", Kinds: []string{"lock"}}
}
