package history

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"
)

// Rule judges the records of one key.
type Rule struct {
	name  string
	key   string
	finds []func([]Record) []Violation
	model porcupine.Model
	parts func([]Record) [][]porcupine.Operation // nil where there is no model
}

// Name says what the rule is, of which key.
func (r Rule) Name() string { return r.name + " " + r.key }

// judgeWithin bounds porcupine's search for one rule.
const judgeWithin = time.Minute

// Judgement is what a rule says about a history.
type Judgement struct {
	Violations []Violation
	// Undecided are the parts of the history that porcupine could not judge in
	// time. They count as allowed.
	Undecided int

	pictures []porcupine.LinearizationInfo // of the parts for which it finds no order that the model allows
}

// Judge applies the rule.
func (r Rule) Judge(records []Record) (j Judgement) {
	own := of(records, r.key)
	for _, find := range r.finds {
		j.Violations = append(j.Violations, find(own)...)
	}
	if r.parts != nil {
		j.pictures, j.Undecided = judge(r.model, r.parts(own), judgeWithin)
	}
	if len(j.pictures) > 0 {
		j.Violations = append(j.Violations, Violation{Key: r.key, Text: fmt.Sprintf("porcupine finds no order that the model of a %s allows", r.name)})
	}
	return j
}

func grantSteps(kinds ...Kind) func([]Record) [][]porcupine.Operation {
	return func(records []Record) [][]porcupine.Operation { return chunks(spans(records, kinds...)) }
}

// Mutex: no two exclusive grants are trusted at the same time, and tokens grow
// from grant to grant (since tokens are the order of arrival, that is also
// first come, first served), and no fenced resource refuses a grant that is
// trusted.
func Mutex(key string) Rule {
	return Rule{"mutex", key, []func([]Record) []Violation{exclusion, tokenOrder(false), refused}, lockModel(0, false), grantSteps(Exclusive)}
}

// Turns is [Mutex] with local queues, where the turns of one node share its
// token.
func Turns(key string) Rule {
	return Rule{"mutex with local queues", key, []func([]Record) []Violation{exclusion, tokenOrder(true), refused}, lockModel(0, true), grantSteps(Exclusive)}
}

// Election: at most one leads, and tokens grow from term to term.
func Election(key string) Rule {
	r := Mutex(key)
	r.name = "election"
	return r
}

// ReadersWriter: an exclusive grant is alone, shared ones only among
// themselves; the tokens of exclusive ones grow, and no fenced resource refuses
// one that is trusted.
func ReadersWriter(key string) Rule {
	return Rule{"read/write lock", key, []func([]Record) []Violation{exclusion, tokenOrder(false), refused}, lockModel(0, false), grantSteps(Exclusive, Shared)}
}

// Leases: at most n leases are trusted at the same time, by weight.
func Leases(key string, n int) Rule {
	return Rule{"semaphore", key, []func([]Record) []Violation{atMost(n)}, lockModel(n, false), grantSteps(Lease)}
}

// Queue: what comes out had been put in; nothing comes out again after it was
// taken or acknowledged; no consumer receives what another has; and if the
// queue was drained at the end, nothing is lost.
func Queue(key string, drained bool) Rule {
	finds := []func([]Record) []Violation{invented, repeated, shared}
	if drained {
		finds = append(finds, lost)
	}
	return Rule{"queue", key, finds, itemModel.ToModel(), itemSteps}
}

// FIFO: what was put into a queue earlier is taken earlier.
func FIFO(key string) Rule {
	return Rule{name: "fifo", key: key, finds: []func([]Record) []Violation{overtaken}}
}

// Rounds: a barrier of n lets no member in before n have come, and none out
// while a member of the round is at work, begins no round while another lasts,
// and tells all members of a round the same end.
func Rounds(key string, n int) Rule {
	return Rule{"double barrier", key, []func([]Record) []Violation{size(n), verdicts, together}, roundModel(n), roundSteps}
}

// Barrier: no client passes within a time in which it was certainly shut. At
// the times in opened others than its keeper have opened it, until it is shut
// again.
func Barrier(key string, opened ...time.Duration) Rule {
	return Rule{name: "barrier", key: key, finds: []func([]Record) []Violation{passages(opened)}}
}
