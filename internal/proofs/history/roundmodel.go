package history

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// roundState counts the members of one round at each of its stages.
type roundState struct{ arrived, entered, departed, left int }

// A member arrives and enters between the call and the return of its Enter,
// departs at its Leave, and has left when that returns. It enters when all have
// arrived, and has left when all have departed.
const (
	arrive = "arrive"
	pass   = "enter"
	depart = "depart"
	left   = "leave"
)

type roundStep struct {
	stage  string
	member string
	size   int // members of the round
}

// roundModel judges a round of at most n.
func roundModel(n int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return roundState{} },
		Step: func(state, input, _ any) (bool, any) {
			r, s := state.(roundState), input.(roundStep)
			switch s.stage {
			case arrive:
				r.arrived++
				return r.arrived <= n, r
			case pass:
				r.entered++
				return r.arrived == s.size, r
			case depart:
				r.departed++
				return r.departed <= s.size, r
			}
			r.left++
			return r.departed == s.size, r
		},
		DescribeOperation: func(input, _ any) string {
			s := input.(roundStep)
			return s.member + ": " + s.stage
		},
		DescribeState: func(state any) string { return fmt.Sprintf("%+v", state) },
	}
}

func roundSteps(records []Record) (all [][]porcupine.Operation) {
	for _, r := range rounds(records) {
		var ops []porcupine.Operation
		add := func(member span, stage string, from, to int64) {
			ops = append(ops, porcupine.Operation{
				ClientId: len(ops), Input: roundStep{stage, member.Client, len(r.enters)}, Call: from, Return: to,
			})
		}
		for _, e := range r.enters {
			add(e, arrive, int64(e.Call), int64(e.Return))
			add(e, pass, int64(e.Call), int64(e.Return))
			if e.to == never {
				continue
			}
			add(e, depart, int64(e.to), int64(never))
			if i := slices.IndexFunc(e.ends, func(end Record) bool { return end.Kind == Leave && end.Outcome == OK }); i >= 0 {
				add(e, left, int64(e.ends[i].Call), int64(e.ends[i].Return))
			}
		}
		all = append(all, ops)
	}
	return all
}
