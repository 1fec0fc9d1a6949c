package history

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// step is an operation as the models see it: a grant, or the end of one.
type step struct {
	Record
	grant span // of an end: what ended
}

// chunk is how many grants are judged together: porcupine's memory grows with
// the square. A part of a history that was allowed is allowed, too, if each of
// its grants is there with its end. Violations that are further apart are left
// to the direct checks.
const chunk = 100

// chunks turns grants into operations. A grant takes place between its call and
// its return. It ends at some time after the holder's trust did, and if it was
// released, before the release returned.
func chunks(grants []span) (all [][]porcupine.Operation) {
	clients := map[string]int{}
	id := func(client string) int {
		if _, known := clients[client]; !known {
			clients[client] = len(clients)
		}
		return clients[client]
	}
	for part := range slices.Chunk(grants, chunk) {
		var ops []porcupine.Operation
		for _, g := range part {
			ops = append(ops, porcupine.Operation{
				ClientId: id(g.Client), Input: step{Record: g.Record}, Call: int64(g.Call), Return: int64(g.from),
			})
			if g.to != never {
				ops = append(ops, porcupine.Operation{
					ClientId: id(g.Client), Input: step{Record: g.ends[0], grant: g}, Call: int64(g.to), Return: g.over(),
				})
			}
		}
		all = append(all, ops)
	}
	return all
}

// over is when the servers had certainly ended the grant.
func (s *span) over() int64 {
	over := never
	for _, end := range s.ends {
		if end.Outcome == OK && end.Kind != Lost && end.Kind != Broken {
			over = min(over, end.Return)
		}
	}
	if over == never {
		return math.MaxInt64
	}
	return int64(max(over, s.to+1))
}

// lockState is a lock, a shared lock or a semaphore.
type lockState struct {
	writer  int // the exclusive grant that holds, 0 for none
	readers int
	leases  int
	token   int64 // of the last writer
}

// lockModel allows one writer or any number of readers, and n leases. The
// tokens of writers grow, unless they may repeat.
func lockModel(n int, repeat bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return lockState{} },
		Step: func(state, input, _ any) (bool, any) { return state.(lockState).next(input.(step), n, repeat) },
		DescribeOperation: func(input, _ any) string {
			s := input.(step)
			if s.Of != 0 {
				return fmt.Sprintf("%s (token %d)", s.Kind, s.grant.Token)
			}
			return fmt.Sprintf("%s (token %d)", s.Kind, s.Token)
		},
		DescribeState: func(state any) string { return fmt.Sprintf("%+v", state) },
	}
}

func (l lockState) next(s step, n int, repeat bool) (bool, lockState) {
	free := l.writer == 0
	switch s.Kind {
	case Exclusive:
		ok := free && l.readers == 0 && follows(s.Token, l.token, repeat)
		l.writer, l.token = s.ID, s.Token
		return ok, l
	case Shared:
		l.readers++
		return free, l
	case Lease:
		l.leases += s.weight()
		return l.leases <= n, l
	}
	switch s.grant.Kind {
	case Exclusive:
		ok := l.writer == s.grant.ID
		l.writer = 0
		return ok, l
	case Shared:
		l.readers--
		return l.readers >= 0, l
	}
	l.leases -= s.grant.weight()
	return l.leases >= 0, l
}

// itemState is what is known of one item of a queue.
type itemState struct {
	phase    itemPhase
	consumer int // the receive that has it
}

type itemPhase string

const (
	absent  itemPhase = ""
	waiting itemPhase = "waiting"
	claimed itemPhase = "claimed"
	gone    itemPhase = "gone"
)

// itemModel allows an item to be put, received any number of times in turn, and
// then taken or acknowledged once. Unknown operations may or may not happen.
var itemModel = porcupine.NondeterministicModel{
	Init: func() []any { return []any{itemState{}} },
	Step: func(state, input, _ any) (next []any) {
		s := input.(step)
		after, ok := state.(itemState).next(s)
		if ok {
			next = append(next, after)
		}
		if s.Outcome == Unknown || s.Outcome == Open || s.Kind == Lost || s.Kind == Broken {
			next = append(next, state)
			if ok && s.Kind == Ack { // not carried out, but the consumer is through with the item
				next = append(next, itemState{phase: waiting})
			}
		}
		return next
	},
	DescribeOperation: func(input, _ any) string {
		s := input.(step)
		return fmt.Sprintf("%s (%s)", s.Kind, s.Outcome)
	},
	DescribeState: func(state any) string { return fmt.Sprintf("%v", state) },
}

func (i itemState) next(s step) (itemState, bool) {
	switch s.Kind {
	case Put:
		return itemState{phase: waiting}, i.phase == absent
	case Take:
		return itemState{phase: gone}, i.phase == waiting
	case Receive:
		return itemState{claimed, s.ID}, i.phase == waiting
	case Ack:
		return itemState{phase: gone}, i.phase == claimed && i.consumer == s.Of
	}
	return itemState{phase: waiting}, i.phase == claimed && i.consumer == s.Of
}

// itemSteps gives the operations on each item, whose history can be judged by
// itself.
func itemSteps(records []Record) (all [][]porcupine.Operation) {
	byItem := map[string][]porcupine.Operation{}
	received := map[int]string{}
	for _, r := range records {
		if r.Kind == Receive && r.Outcome == OK {
			received[r.ID] = r.Item
		}
		item := cmp.Or(r.Item, received[r.Of])
		if item == "" || r.Outcome == Failed || r.Kind == Receive && r.Outcome != OK {
			continue
		}
		over := r.returned()
		if r.Kind == Lost || r.Kind == Broken {
			over = never
		}
		byItem[item] = append(byItem[item], porcupine.Operation{
			ClientId: len(byItem[item]), Input: step{Record: r}, Call: int64(r.Call), Return: int64(over),
		})
	}
	for _, ops := range byItem {
		all = append(all, ops)
	}
	return all
}

// judge has porcupine look for an order that the model allows, and counts the
// parts that it cannot decide in time. No part takes more than a tenth of it.
func judge(
	model porcupine.Model, parts [][]porcupine.Operation, within time.Duration,
) (bad []porcupine.LinearizationInfo, undecided int) {
	deadline := time.Now().Add(within)
	for i, ops := range parts {
		left := time.Until(deadline)
		if left <= 0 {
			return bad, undecided + len(parts) - i
		}
		switch result, info := porcupine.CheckOperationsVerbose(model, ops, min(left, within/10)); result {
		case porcupine.Illegal:
			bad = append(bad, info)
		case porcupine.Unknown:
			undecided++
		}
	}
	return bad, undecided
}

// shown is how many violations of one rule are described; the rest is counted.
const shown = 5

// Check applies the rules to what was recorded so far. It fails the test if
// one is violated, and keeps the history as files. It returns how many
// violations there are, and how many parts of the history no model decided.
func Check(t testing.TB, r *Recorder, rules ...Rule) (violations, undecided int) {
	t.Helper()
	records := r.Records()
	var dir string
	for _, rule := range rules {
		j := rule.Judge(records)
		undecided += j.Undecided
		if j.Undecided > 0 {
			t.Logf("%s: porcupine left %d parts undecided after %v", rule.Name(), j.Undecided, judgeWithin)
		}
		if len(j.Violations) == 0 {
			continue
		}
		violations += len(j.Violations)
		if dir == "" {
			dir = Keep(t, r)
		}
		for i, picture := range j.pictures[:min(shown, len(j.pictures))] {
			draw(t, dir, rule, i, picture)
		}
		t.Errorf("%s: %s", rule.Name(), tell(j.Violations))
	}
	if dir != "" {
		t.Logf("the history is kept in %s", dir)
	}
	return violations, undecided
}

// tell describes the first few violations.
func tell(found []Violation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d violations", len(found))
	for _, v := range found[:min(shown, len(found))] {
		fmt.Fprintf(&b, "\n\t%s", v)
	}
	return b.String()
}

// Keep writes the records and the notes into a new folder of the artefacts, and
// returns its path.
func Keep(t testing.TB, r *Recorder) string {
	t.Helper()
	parent := filepath.Join(zktest.ArtefactDir(), "history")
	err := os.MkdirAll(parent, 0o755)
	var dir string
	if err == nil {
		dir, err = os.MkdirTemp(parent, fileName(t.Name())+"-")
	}
	if err == nil {
		err = write(filepath.Join(dir, "history.jsonl"), func(w io.Writer) (err error) {
			for _, rec := range r.Records() {
				_, failure := fmt.Fprintln(w, rec)
				err = cmp.Or(err, failure)
			}
			return err
		})
	}
	if err == nil {
		notes := strings.Join(r.Notes(), "\n") + "\n"
		err = os.WriteFile(filepath.Join(dir, "notes.txt"), []byte(notes), 0o644)
	}
	if err != nil {
		t.Errorf("the history cannot be kept: %v", err)
	}
	return dir
}

func draw(t testing.TB, dir string, rule Rule, i int, info porcupine.LinearizationInfo) {
	t.Helper()
	name := filepath.Join(dir, fmt.Sprintf("%s-%d.html", fileName(rule.Name()), i+1))
	err := write(name, func(w io.Writer) error { return porcupine.Visualize(rule.model, info, w) })
	if err != nil {
		t.Errorf("the picture of %s cannot be kept: %v", rule.Name(), err)
	}
}

func write(path string, content func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := content(f); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// fileName turns a name into one for a file.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, name)
}
