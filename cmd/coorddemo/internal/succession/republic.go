package succession

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"time"
)

const (
	// A leader is killed after a time in office between these.
	shortestReign = 200 * time.Millisecond
	longestReign  = 700 * time.Millisecond
	// maxFailures is how many replicas may end by themselves, with an error, before the demonstration gives up.
	maxFailures = 3
	// leaveWithin is how long the replicas have to end when they are told to.
	leaveWithin = 5 * time.Second
)

// Republic starts replicas, kills leaders, and judges.
type Republic struct {
	Replicas int
	Kills    int
	Log      string                          // will be made
	Command  func(id int) (*exec.Cmd, error) // starts a Replica on its stdin and stdout
	Watch    func(Progress)                  // told of everything that happens; called by one goroutine

	staff    map[int]*replica
	events   chan event
	hired    int
	failures int
	leader   *replica
	elected  time.Time
	term     <-chan time.Time // the leader is killed then
	killed   time.Time        // the last kill, until there is another leader
	result   Result
}

// Progress is one thing that happened.
type Progress struct {
	Kind  string // "leads", "killed", "failed"
	PID   int
	Token int64         // leads
	Gap   time.Duration // leads: since the last leader was killed, 0 for the first
	Reign time.Duration // killed: how long it led
	Err   error         // failed
}

// Result is the outcome.
type Result struct {
	Log
	Kills  int
	MaxGap time.Duration // the longest time from a kill to the next leader's first entry
	Took   time.Duration
}

// replica is a replica as the parent sees it.
type replica struct {
	id   int
	cmd  *exec.Cmd
	in   io.WriteCloser
	dead bool // it was killed
}

// event is a message from a replica, or its end if message is nil.
type event struct {
	from    *replica
	message *message
	err     error
}

// Run kills the leader again and again. The result is good also when there is an error.
func (r *Republic) Run(ctx context.Context) (Result, error) {
	begin := time.Now()
	if err := os.WriteFile(r.Log, nil, 0o600); err != nil {
		return Result{}, err
	}
	r.staff, r.events = map[int]*replica{}, make(chan event)
	err := r.reign(ctx)
	r.close()
	log, readErr := ReadLog(r.Log)
	r.result.Log, r.result.Took = log, time.Since(begin)
	return r.result, errors.Join(err, readErr)
}

// reign lets each leader lead for a while and kills it; the last one stays.
func (r *Republic) reign(ctx context.Context) error {
	for range r.Replicas {
		if err := r.hire(); err != nil {
			return err
		}
	}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.term:
			if r.result.Kills == r.Kills {
				return nil
			}
			r.kill()
		case e := <-r.events:
			if e.message != nil {
				r.inaugurate(e.from, e.message.Leads)
			} else if err := r.replace(e); err != nil {
				return err
			}
		}
	}
}

func (r *Republic) inaugurate(leader *replica, token int64) {
	if leader.dead {
		return
	}
	r.leader, r.elected, r.term = leader, time.Now(), time.After(shortestReign+rand.N(longestReign-shortestReign))
	gap := time.Duration(0)
	if !r.killed.IsZero() {
		gap, r.killed = r.elected.Sub(r.killed), time.Time{}
	}
	r.result.MaxGap = max(r.result.MaxGap, gap)
	r.Watch(Progress{Kind: "leads", PID: leader.cmd.Process.Pid, Token: token, Gap: gap})
}

func (r *Republic) kill() {
	r.leader.dead = true
	_ = r.leader.cmd.Process.Kill()
	r.killed, r.term = time.Now(), nil
	r.result.Kills++
	r.Watch(Progress{Kind: "killed", PID: r.leader.cmd.Process.Pid, Reign: r.killed.Sub(r.elected)})
}

// replace starts another replica for one that has ended.
func (r *Republic) replace(e event) error {
	delete(r.staff, e.from.id)
	if !e.from.dead {
		r.failures++
		r.Watch(Progress{Kind: "failed", PID: e.from.cmd.Process.Pid, Err: e.err})
	}
	if r.failures > maxFailures {
		return fmt.Errorf("too many replicas failed; the last one: %w", e.err)
	}
	return r.hire()
}

// hire starts a further replica.
func (r *Republic) hire() error {
	r.hired++
	cmd, err := r.Command(r.hired)
	if err != nil {
		return err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	// A pipe of our own, which is read to its end though the replica is dead.
	out, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout = theirs
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		_ = out.Close()
		return fmt.Errorf("starting a replica: %w", err)
	}
	hired := &replica{id: r.hired, cmd: cmd, in: in}
	r.staff[hired.id] = hired
	go r.listen(hired, out)
	return nil
}

// listen passes on what a replica tells, and its end after the last word.
func (r *Republic) listen(from *replica, out *os.File) {
	defer out.Close()
	for lines := json.NewDecoder(bufio.NewReader(out)); ; {
		m := &message{}
		if lines.Decode(m) != nil {
			break
		}
		r.events <- event{from: from, message: m}
	}
	r.events <- event{from: from, err: from.cmd.Wait()}
}

// close ends the replicas and waits for them. Those that do not go are killed.
func (r *Republic) close() {
	for _, p := range r.staff {
		_ = p.in.Close()
	}
	for late := time.After(leaveWithin); len(r.staff) > 0; {
		select {
		case e := <-r.events:
			if e.message == nil {
				delete(r.staff, e.from.id)
			}
		case <-late:
			for _, p := range r.staff {
				_ = p.cmd.Process.Kill()
			}
		}
	}
}
