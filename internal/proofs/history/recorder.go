package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Recorder collects records. It is safe for concurrent use.
type Recorder struct {
	begin    time.Time
	sink     func(Record)
	byChecks bool

	mu       sync.Mutex
	last     time.Duration
	late     time.Duration
	records  []*Record                // pointers, for the slice is copied when it grows
	live     map[int]bool             // grants, and what may become one, without an end
	ended    map[int]time.Duration    // grants that have an end
	closed   []closing                // their ends, in the order in which those were recorded
	newest   map[[2]string]int        // grant with a token, by client and key
	seen     map[string]time.Duration // time of a client's newest record
	tokens   []tokenSeen              // each larger than the one before it
	imported map[string]map[int]int   // ids by source and the source's own id
	notes    []string
}

// New begins a history.
func New() *Recorder {
	return &Recorder{
		begin: time.Now(), live: map[int]bool{}, ended: map[int]time.Duration{}, newest: map[[2]string]int{},
		seen: map[string]time.Duration{}, imported: map[string]map[int]int{},
	}
}

// Sink has f called with every record when it is made and again when it is
// complete, in order. It is for a process whose records another collects; set
// it before the first record. f must not block for long.
func (r *Recorder) Sink(f func(Record)) { r.sink = f }

// ByChecks has a loss count from the last time [Grant.Trusted] said yes, unless
// the end of the trust window says more exactly when it was. It is for machines
// so busy that a goroutine sees the end of a hold long after it came; holders
// must then check often. Set it before the first record.
func (r *Recorder) ByChecks() { r.byChecks = true }

// Begin returns the moment from which the history counts.
func (r *Recorder) Begin() time.Time { return r.begin }

// Note adds a line to what is kept of a failed test: the seed, a fault.
func (r *Recorder) Note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes = append(r.notes, fmt.Sprintf("%12.6f ", r.now().Seconds())+fmt.Sprintf(format, args...))
}

// Notes returns what was noted, with the times.
func (r *Recorder) Notes() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.notes)
}

// Records returns a copy of all records, by ID.
func (r *Recorder) Records() []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]Record, len(r.records))
	for i, rec := range r.records {
		all[i] = *rec
	}
	return all
}

// Len returns how many records there are.
func (r *Recorder) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.records)
}

// signalled notes how long after the end of its window a hold's Done was
// closed.
func (r *Recorder) signalled(late time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late = max(r.late, late)
}

// LatestSignal returns how long, at most, a hold's Done was closed after the
// end of its window.
func (r *Recorder) LatestSignal() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.late
}

// now returns a time that no other record has; r.mu is held.
func (r *Recorder) now() time.Duration {
	r.last = max(time.Since(r.begin), r.last+1)
	return r.last
}

// Op is an operation under way.
type Op struct {
	rec *Recorder
	id  int
}

func (o *Op) record() Record {
	o.rec.mu.Lock()
	defer o.rec.mu.Unlock()
	return *o.rec.records[o.id-1]
}

// Call records the call of an operation. End it with [Op.End].
func (r *Recorder) Call(client, key string, kind Kind, details ...Detail) *Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := Record{Client: client, Key: key, Kind: kind, Outcome: Open, Call: r.now()}
	for _, detail := range details {
		detail(&rec)
	}
	return &Op{r, r.append(rec)}
}

// append adds a record and returns its ID; r.mu is held.
func (r *Recorder) append(rec Record) int {
	rec.ID = len(r.records) + 1
	r.records = append(r.records, &rec)
	r.saw(rec)
	if rec.grants() {
		r.live[rec.ID] = true
	}
	if rec.Of != 0 && rec.Kind != Broken {
		r.closed = append(r.closed, closing{rec.Of, rec.ID, r.now()})
		delete(r.live, rec.Of)
		if before, ended := r.ended[rec.Of]; !ended || rec.Call < before {
			r.ended[rec.Of] = rec.Call
		}
	}
	if r.sink != nil {
		r.sink(rec)
	}
	return rec.ID
}

// saw notes when a client did something. A [Broken] is what the test has done,
// and reaches into the future.
func (r *Recorder) saw(rec Record) {
	if rec.Kind == Broken {
		return
	}
	r.seen[rec.Client] = max(r.seen[rec.Client], rec.Call, rec.Return)
}

// End records the return of the operation.
func (o *Op) End(outcome Outcome, err error, details ...Detail) {
	o.rec.mu.Lock()
	defer o.rec.mu.Unlock()
	rec := o.rec.records[o.id-1]
	rec.Return, rec.Outcome = o.rec.now(), outcome
	if err != nil {
		rec.Err = err.Error()
	}
	for _, detail := range details {
		detail(rec)
	}
	o.rec.complete(rec)
}

// complete gives a complete record to the sink; r.mu is held.
func (r *Recorder) complete(rec *Record) {
	r.saw(*rec)
	if !rec.grants() {
		delete(r.live, rec.ID)
	} else if rec.Token != 0 {
		r.newest[[2]string{rec.Client, rec.Key}] = rec.ID
		if n := len(r.tokens); n == 0 || r.tokens[n-1].token < rec.Token {
			r.tokens = append(r.tokens, tokenSeen{rec.Return, rec.Token})
		}
	}
	if r.sink != nil {
		r.sink(*rec)
	}
}

// Lost records that a grant ended without a release, now, or at the end of its
// trust window, if that was before. The zero time stands for no window. The
// earliest end of a grant counts.
func (o *Op) Lost(window time.Time, cause error) {
	o.rec.mu.Lock()
	defer o.rec.mu.Unlock()
	at := o.rec.now()
	if !window.IsZero() {
		at = min(at, window.Sub(o.rec.begin))
	}
	o.rec.lose(o.id, at, fmt.Sprint(cause))
}

// lose adds the end of a grant; r.mu is held.
func (r *Recorder) lose(grant int, at time.Duration, cause string) {
	of := r.records[grant-1]
	r.append(Record{
		Client: of.Client, Key: of.Key, Kind: Lost, Call: at, Return: at,
		Outcome: OK, Of: grant, Token: of.Token, Item: of.Item, Round: of.Round, Err: cause,
	})
}

// Refused records that a fenced resource turned the holder with a token away,
// at some moment between from and now.
func (r *Recorder) Refused(client, key string, token int64, from time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.append(Record{
		Client: client, Key: key, Kind: Refused, Call: from.Sub(r.begin), Return: r.now(), Outcome: OK, Token: token,
	})
}

// Break records that the test ended, from outside, at some moment between from
// and now, every grant of the clients whose names begin with prefix, on the key
// or on any if that is "": trust in them after that is no violation. That
// includes acquisitions which return within grace, the time the client may take
// to learn what happened, and further turns of a node that a local queue keeps.
// If node is not 0, the test deleted one node, whose token that is, and no
// grant with another token is excused. Otherwise, a further turn is excused if
// its node was there before: its token is not larger than one that was seen by
// then, on any key. It returns how many grants and acquisitions there were.
func (r *Recorder) Break(prefix, key string, node int64, how string, from time.Time, grace time.Duration) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, over := from.Sub(r.begin), r.now()+grace
	token := r.tokenBy(at)
	hit := maps.Clone(r.live)
	for _, c := range slices.Backward(r.closed) {
		if c.recorded < at-recently {
			break
		}
		end := r.records[c.end-1]
		if end.returned() >= at || r.ended[c.grant] >= at || r.records[c.grant-1].Return >= at { // the end may be dated back
			hit[c.grant] = true
		}
	}
	idle := slices.DeleteFunc(slices.Sorted(maps.Values(r.newest)), func(id int) bool { return hit[id] })
	broken := func(grants []int) (n int) {
		for _, id := range grants {
			g := r.records[id-1]
			if !strings.HasPrefix(g.Client, prefix) || key != "" && g.Key != key || !g.grants() || g.apart(node) {
				continue
			}
			r.append(Record{
				Client: g.Client, Key: g.Key, Kind: Broken, Call: at, Return: over,
				Outcome: OK, Of: id, Token: token, Node: node, Err: how,
			})
			n++
		}
		return n
	}
	n := broken(slices.Sorted(maps.Keys(hit)))
	if node == 0 {
		broken(idle)
		return n
	}
	r.append(Record{Client: prefix, Key: key, Kind: Broken, Call: at, Return: over, Outcome: OK, Node: node, Err: how})
	return n
}

// apart reports whether a grant is known to be of another node than the one
// with this token; 0 stands for no node in particular.
func (r *Record) apart(node int64) bool { return node != 0 && r.Token != 0 && r.Token != node }

// tokenSeen is a token of a node, and when that was there already.
type tokenSeen struct {
	at    time.Duration
	token int64
}

// tokenBy returns the largest token that was seen by then, or 0.
func (r *Recorder) tokenBy(at time.Duration) int64 {
	for _, seen := range slices.Backward(r.tokens) {
		if seen.at <= at {
			return seen.token
		}
	}
	return 0
}

// recently is by how much the end of a grant may be recorded before it comes.
const recently = time.Minute

// closing is when an end of a grant was recorded: a release, whose outcome may
// be unknown for long, or a loss. A loss may be dated long before, even at the
// beginning of the history.
type closing struct {
	grant, end int
	recorded   time.Duration
}

// grants reports whether the record is, or may become, a grant.
func (r *Record) grants() bool {
	if r.Outcome != OK && r.Outcome != Open {
		return false
	}
	switch r.Kind {
	case Exclusive, Shared, Lease, Receive, Enter, Run, Number:
		return true
	}
	return false
}

// Died ends every grant of the clients whose names begin with prefix: their
// process was killed. It is not known when each of them ended: what the process
// did after its last record, such as a release, may not have been recorded.
func (r *Recorder) Died(prefix string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var at time.Duration
	for client, seen := range r.seen {
		if strings.HasPrefix(client, prefix) {
			at = max(at, seen)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.live)) {
		if g := r.records[id-1]; strings.HasPrefix(g.Client, prefix) && g.Outcome == OK {
			r.lose(id, at, "process gone")
		}
	}
}

// Import adds a record of another process, which a [Recorder.Sink] gave there;
// a second one with the same ID replaces the first. shift is how much later
// than this history the other began. source must be different for every
// process.
func (r *Recorder) Import(source string, rec Record, shift time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := r.imported[source]
	if ids == nil {
		ids = map[int]int{}
		r.imported[source] = ids
	}
	rec.Call += shift
	if rec.Return != 0 {
		rec.Return += shift
	}
	if rec.Of != 0 {
		rec.Of = ids[rec.Of]
	}
	if id, known := ids[rec.ID]; known {
		rec.ID = id
		r.records[id-1] = &rec
		r.complete(&rec)
		return
	}
	ids[rec.ID] = r.append(rec)
}
