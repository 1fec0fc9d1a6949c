package history

import (
	"encoding/json"
	"fmt"
	"time"
)

// Kind says what a record is about.
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

// Verdict is how a barrier's round ended, in any words.
func Verdict(words string) Detail { return func(r *Record) { r.Verdict = words } }

// Of names the grant that a release, an ack or a leave is about.
func Of(grant *Op) Detail { return func(r *Record) { r.Of = grant.id } }
