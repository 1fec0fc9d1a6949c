package once

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

const (
	spread  = 32  // directories of keys: 100,000 keys are listed by less than 1 MB each
	logs    = 4   // directories of the log
	maxName = 200 // bytes of a key, as it is written in a node's name
)

// place is where a key has its nodes.
type place struct {
	root string // the path of the ledger
	hash uint32
	name string
	dir  string // the line of the job's lock, and its record
}

// place returns the place of a key.
func (o *Once) place(key string) (place, error) {
	name := url.PathEscape(key)
	if name == "." || name == ".." {
		name = strings.ReplaceAll(name, ".", "%2E")
	}
	if name == "" || len(name) > maxName {
		return place{}, fmt.Errorf("%w: key %.40q: it must have 1 to %d bytes, %%-escapes counted as in a URL, not %d",
			coord.ErrInvalid, key, maxName, len(name))
	}
	return o.named(name), nil
}

func (o *Once) named(name string) place {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name)) // never fails
	sum := hash.Sum32()
	return place{o.path, sum, name, fmt.Sprintf("%s/%s", bucket(o.path, sum%spread), name)}
}

func bucket(path string, i uint32) string { return fmt.Sprintf("%s/keys/%02d", path, i) }

func (p place) record() string { return p.dir + "/record" }

func (p place) spec() *coord.Spec {
	return &coord.Spec{Line: inspect.LockLine(p.dir), Kind: "lock", Recipe: p.root, Exclusive: true}
}

// Line returns the line of a job's lock, for programs that look at it.
func (o *Once) Line(key string) (coord.Line, error) {
	at, err := o.place(key)
	return at.spec().Line, recipe.Failure(o.client, "line", o.path, err)
}

// log is the directory in which the runs of the key are noted.
func (p place) log() string { return logDir(p.root, int(p.hash/spread%logs)) }

func logDir(path string, i int) string { return fmt.Sprintf("%s/log/%d", path, i) }

// logged notes a run in the log.
func (o *Once) logged(id string, p place) coord.Op {
	return coord.AppendOp(p.log()+"/", []byte(id+" "+p.name))
}

// State is what is known of a job.
type State string

// The states of a job.
const (
	Running    State = "running"    // a client has it
	Done       State = "done"       // it ended well, and its data are on record
	Failed     State = "failed"     // the last attempt failed
	Unfinished State = "unfinished" // the last attempt began, no end is on record, and nobody has it
	Corrupt    State = "corrupt"    // the record is none: Err says why. [Once.Do] fails, and [Once.Forget] helps
)

// Result is what the ledger says about a job.
type Result struct {
	Key     string
	State   State // "" if there is no record
	Data    []byte
	Err     string        // the text of the failure, the first 4096 bytes of it; or why the record is corrupt
	By      string        // the [coord.Info.Identity] of the client that made the last attempt
	Attempt int           // how many were begun
	Begun   time.Time     // the last attempt, by the clock of that client
	Took    time.Duration // until it ended
	// Options are that client's: its [Attempts], [FailOnce], [Keep] and
	// [KeepLast]; "" if it is of an earlier version.
	Options string
}

// record is a job's record: one line of JSON, then the job's data.
type record struct {
	ID      string        `json:"run"`
	State   State         `json:"state"`
	By      string        `json:"by"`
	Attempt int           `json:"attempt"`
	Begun   time.Time     `json:"begun"`
	Took    time.Duration `json:"took,omitempty"` // in ns
	Err     string        `json:"error,omitempty"`
	Options string        `json:"options,omitempty"`
	data    []byte
}

func (r record) encode(data []byte) []byte {
	head, _ := json.Marshal(r) // never fails
	return append(append(head, '\n'), data...)
}

// errCorrupt: only Forget can help.
var errCorrupt = fmt.Errorf("%w: no record of a job; Forget deletes it", coord.ErrInvalid)

// decode reads a record.
func decode(data []byte) (r record, err error) {
	head, rest, _ := bytes.Cut(data, []byte{'\n'})
	err = json.Unmarshal(head, &r)
	if err != nil || r.Attempt < 1 || r.State != Running && r.State != Done && r.State != Failed {
		return record{}, fmt.Errorf("%w: %.40q", errCorrupt, data)
	}
	r.data = rest
	return r, nil
}

func (r record) result(key string) Result {
	return Result{key, r.State, r.data, r.Err, r.By, r.Attempt, r.Begun, r.Took, r.Options}
}

// newID names a run.
func newID() string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// read reads the record of a job; the Stat is zero if there is none.
func (o *Once) read(ctx context.Context, c *coord.Client, p place) (record, coord.Stat, error) {
	data, stat, err := c.Get(ctx, p.record())
	if errors.Is(err, coord.ErrNoNode) {
		return record{}, coord.Stat{}, nil
	}
	if err != nil {
		return record{}, stat, err
	}
	r, err := decode(data)
	if err != nil {
		err = fmt.Errorf("%s: %w", p.record(), err)
	}
	return r, stat, err
}

// List yields every job that has a record, in no particular order. It costs 32
// listings, a read for each job, and a listing and perhaps a second read for
// each whose record says that it runs; 64 jobs are looked at at a time. An
// error ends it, with a zero Result.
func (o *Once) List(ctx context.Context) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		for i := range uint32(spread) {
			names, err := o.children(ctx, bucket(o.path, i))
			for len(names) > 0 && err == nil {
				n := min(len(names), 64)
				results, failures := make([]Result, n), make([]error, n)
				var looking sync.WaitGroup
				for i, name := range names[:n] {
					looking.Go(func() { results[i], failures[i] = o.look(ctx, o.named(name)) })
				}
				looking.Wait()
				names, err = names[n:], recipe.JoinedWithin(ctx, failures...)
				for _, r := range results {
					if err == nil && r.State != "" && !yield(r, nil) {
						return
					}
				}
			}
			if err != nil {
				yield(Result{}, recipe.Failure(o.client, "list", o.path, err))
				return
			}
		}
	}
}

// look returns what is known of one job.
func (o *Once) look(ctx context.Context, p place) (Result, error) {
	key, bad := url.PathUnescape(p.name)
	r, _, err := o.read(ctx, o.client, p)
	if err == nil && r.State == Running {
		var names []string
		if names, err = o.children(ctx, p.dir); err == nil && len(p.spec().Line.Order(names, o.client.Info().Dialect)) == 0 {
			run := r.ID
			if r, _, err = o.read(ctx, o.client, p); r.ID == run && r.State == Running { // it has not ended since
				r.State = Unfinished
			}
		}
	}
	if errors.Is(err, errCorrupt) {
		return Result{Key: key, State: Corrupt, Err: err.Error()}, nil
	}
	if err != nil || bad != nil || r.State == "" {
		return Result{}, err
	}
	return r.result(key), nil
}

// children lists a directory; one that is missing is empty.
func (o *Once) children(ctx context.Context, dir string) ([]string, error) {
	names, err := o.client.Children(ctx, dir)
	if errors.Is(err, coord.ErrNoNode) {
		return nil, nil
	}
	return names, err
}
