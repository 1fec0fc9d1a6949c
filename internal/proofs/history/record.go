package history

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"
)

// Kind is the subject of a record.
type Kind string

// The kinds of records.
const (
	Exclusive Kind = "acquire"      // a mutex, a write lock, an election: one at a time
	Shared    Kind = "acquire read" // a read lock: with other readers
	Lease     Kind = "lease"        // of a semaphore; Weight counts
	Release   Kind = "release"      // of the grant Of
	Lost      Kind = "lost"         // the grant Of ended without a release, at Call
	Broken    Kind = "broken"       // the test ended the grant Of from outside, at Call
	Refused   Kind = "refused"      // by a fenced resource, of the grant with Token

	Put     Kind = "put"     // Item into a queue
	Take    Kind = "take"    // Item out of it, at most once
	Receive Kind = "receive" // Item, to be acknowledged: a grant
	Ack     Kind = "ack"     // of the receive Of: Item is done
	Nack    Kind = "nack"    // of the receive Of: Item goes back

	Enter Kind = "enter" // a barrier, in Round: a grant
	Leave Kind = "leave" // of the enter Of, with Verdict

	Run Kind = "run" // the job Item, whose result is Verdict if it ends well: a grant
	Did Kind = "did" // the run Of, which ended well
	Ask Kind = "ask" // for the job Item, whose result on record was Verdict

	Number Kind = "number" // the number Item, for the owner Verdict, if there is one: a grant
	Add    Kind = "add"    // of one to a counter, after which it is Sum

	Shut Kind = "shut" // a barrier, from the return until the release
	Pass Kind = "pass" // it
)

// Outcome says how an operation ended.
type Outcome string

// The outcomes.
const (
	Open    Outcome = "open"    // not returned, or never
	OK      Outcome = "ok"      // took effect
	Failed  Outcome = "failed"  // did not take effect
	Unknown Outcome = "unknown" // may have taken effect, or may still
)

// Record is one operation or event. Fields that do not apply are zero.
type Record struct {
	ID      int           `json:"id"` // counted from 1
	Client  string        `json:"client"`
	Key     string        `json:"key"`
	Kind    Kind          `json:"kind"`
	Call    time.Duration `json:"call"`             // since the recorder's beginning, in ns
	Return  time.Duration `json:"return,omitempty"` // 0 while open
	Outcome Outcome       `json:"outcome"`
	Of      int           `json:"of,omitempty"` // the ID of the grant that this is about
	Token   int64         `json:"token,omitempty"`
	Node    int64         `json:"node,omitempty"` // the token of the one node that was deleted
	Weight  int           `json:"weight,omitempty"`
	Item    string        `json:"item,omitempty"`
	Round   int64         `json:"round,omitempty"`
	Verdict string        `json:"verdict,omitempty"`
	Sum     int64         `json:"sum,omitempty"`
	Err     string        `json:"err,omitempty"`
}

// never is after every time of a history.
const never = time.Duration(1<<63 - 1)

// returned is when the operation was over at the latest: never, if it may still
// take effect.
func (r *Record) returned() time.Duration {
	if r.Outcome == Open || r.Outcome == Unknown {
		return never
	}
	return r.Return
}

// String returns the record as a line of JSON.
func (r Record) String() string {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Sprintf("record %d: %v", r.ID, err)
	}
	return string(line)
}

// Detail adds something to a record.
type Detail func(*Record)

// Token is the fencing token of a grant.
func Token(token int64) Detail { return func(r *Record) { r.Token = token } }

// Weight is how many leases were asked for, one if it is not said; or how many
// members a barrier says its round has.
func Weight(n int) Detail { return func(r *Record) { r.Weight = n } }

// Item is what was put or taken. Every item of a history must be different.
func Item(item string) Detail { return func(r *Record) { r.Item = item } }

// Round is the number of a barrier's round.
func Round(n int64) Detail { return func(r *Record) { r.Round = n } }

// Verdict is how a barrier's round ended, or a job, in any words.
func Verdict(words string) Detail { return func(r *Record) { r.Verdict = words } }

// Sum is what a counter is after an addition.
func Sum(n int64) Detail { return func(r *Record) { r.Sum = n } }

// Of names the grant that a release, an ack or a leave is about.
func Of(grant *Op) Detail { return func(r *Record) { r.Of = grant.id } }

// Rule judges the records of one key.
type Rule struct {
	name  string
	key   string
	finds []func([]Record) []Violation
	model porcupine.Model
	parts func([]Record) [][]porcupine.Operation // nil where there is no model
}

// Name names the rule and its key.
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
		j.Violations = append(j.Violations,
			Violation{Key: r.key, Text: fmt.Sprintf("porcupine finds no order that the model of a %s allows", r.name)})
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
	return Rule{
		"mutex", key,
		[]func([]Record) []Violation{exclusion, growing(Exclusive, false), refused},
		lockModel(0, false),
		grantSteps(Exclusive),
	}
}

// Turns is [Mutex] with local queues, where the turns of one node share its
// token.
func Turns(key string) Rule {
	return Rule{
		"mutex with local queues", key,
		[]func([]Record) []Violation{exclusion, growing(Exclusive, true), refused},
		lockModel(0, true), grantSteps(Exclusive),
	}
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
	return Rule{
		"read/write lock", key,
		[]func([]Record) []Violation{exclusion, growing(Exclusive, false), refused},
		lockModel(0, false), grantSteps(Exclusive, Shared),
	}
}

// Leases: at most n leases are trusted at the same time, by weight.
func Leases(key string, n int) Rule {
	return Rule{"semaphore", key, []func([]Record) []Violation{atMost(n)}, lockModel(n, false), grantSteps(Lease)}
}

// Queue: what comes out had been put in; nothing comes out again after it was
// taken or acknowledged; no consumer receives what another has; and if the
// queue was drained at the end, nothing is lost.
func Queue(key string, drained bool) Rule {
	finds := []func([]Record) []Violation{invented, repeated, shared(Receive)}
	if drained {
		finds = append(finds, lost)
	}
	return Rule{"queue", key, finds, itemModel.ToModel(), itemSteps}
}

// Jobs: no job runs twice at the same time, nor more than so many times, nor
// again after its end was on record, and all who ask get the same result, which
// one of its runs had. The record may be gone when so many runs have begun
// since, or when it is so old. Zero is no limit.
func Jobs(key string, attempts, keep int, age time.Duration) Rule {
	return Rule{
		name: "once", key: key, finds: []func([]Record) []Violation{shared(Run), ended(keep, age), attempted(attempts)},
	}
}

// Schedule: its slots are jobs whose records may be deleted, and yet none runs
// again; and no instant is left out, unless every is zero.
func Schedule(key string, every time.Duration) Rule {
	r := Rule{name: "cron", key: key, finds: []func([]Record) []Violation{shared(Run), ended(0, 0)}}
	if every > 0 {
		r.finds = append(r.finds, skipped(every))
	}
	return r
}

// Numbers: no two have a number at the same time, its tokens grow, and no owner
// has two.
func Numbers(key string) Rule {
	owner := func(r Record) string { return r.Verdict }
	return Rule{
		name: "slots", key: key, finds: []func([]Record) []Violation{
			shared(Number), sharedBy(Number, owner), growing(Number, false),
		},
	}
}

// Counter: every addition counts once, and none that failed; the sums are those
// of some order in which each takes place between its call and its return.
func Counter(key string) Rule {
	return Rule{name: "counter", key: key, finds: []func([]Record) []Violation{counted}}
}

// Rounds: a barrier of n lets no member in before n have come, and none out
// while a member of the round is at work, begins no round while another lasts,
// and reports the same end to all members of a round.
func Rounds(key string, n int) Rule {
	return Rule{
		"double barrier", key, []func([]Record) []Violation{size(n), verdicts, together}, roundModel(n), roundSteps,
	}
}

// Barrier: no client passes within a time in which it was certainly shut. At
// the times in opened, others than its keeper opened it: each time it stayed
// open until it was shut again.
func Barrier(key string, opened ...time.Duration) Rule {
	return Rule{name: "barrier", key: key, finds: []func([]Record) []Violation{passages(opened)}}
}
