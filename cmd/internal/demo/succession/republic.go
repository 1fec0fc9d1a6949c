package succession

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/demo/crew"
)

const (
	// A leader is killed after a time in office between these.
	shortestReign = 200 * time.Millisecond
	longestReign  = 700 * time.Millisecond
)

// Republic starts replicas, kills leaders, and judges.
type Republic struct {
	Replicas int
	Kills    int
	Log      string                          // will be made
	Command  func(id int) (*exec.Cmd, error) // starts a Replica on its stdin and stdout
	Watch    func(Progress)                  // gets everything that happens; called by one goroutine

	crew    *crew.Crew[message]
	leader  *crew.Member
	elected time.Time
	term    <-chan time.Time // the leader is killed then
	killed  time.Time        // the last kill, until there is another leader
	result  Result
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
	Kills  int           `json:"kills"`
	MaxGap time.Duration `json:"-"` // the longest time from a kill to the next leader's first entry
	Took   time.Duration `json:"-"`
}

// Run kills the leader again and again. The result is good also when there is
// an error.
func (r *Republic) Run(ctx context.Context) (Result, error) {
	begin := time.Now()
	if err := os.WriteFile(r.Log, nil, 0o600); err != nil {
		return Result{}, err
	}
	r.crew = crew.New[message]()
	err := r.reign(ctx)
	r.crew.Close(func(*crew.Member, *message) {})
	log, readErr := ReadLog(r.Log)
	r.result.Log, r.result.Took = log, time.Since(begin)
	return r.result, errors.Join(err, readErr)
}

// reign lets each leader lead for a while and kills it; the last one stays.
func (r *Republic) reign(ctx context.Context) error {
	for range r.Replicas {
		if _, err := r.crew.Start(r.Command); err != nil {
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
		case e := <-r.crew.Events():
			if e.Message != nil {
				r.inaugurate(e.From, e.Message.Leads)
			} else if err := r.replace(e); err != nil {
				return err
			}
		}
	}
}

func (r *Republic) inaugurate(leader *crew.Member, token int64) {
	if leader.Killed() {
		return
	}
	r.leader, r.elected, r.term = leader, time.Now(), time.After(shortestReign+rand.N(longestReign-shortestReign))
	gap := time.Duration(0)
	if !r.killed.IsZero() {
		gap, r.killed = r.elected.Sub(r.killed), time.Time{}
	}
	r.result.MaxGap = max(r.result.MaxGap, gap)
	r.Watch(Progress{Kind: "leads", PID: leader.PID(), Token: token, Gap: gap})
}

func (r *Republic) kill() {
	r.leader.Kill()
	r.killed, r.term = time.Now(), nil
	r.result.Kills++
	r.Watch(Progress{Kind: "killed", PID: r.leader.PID(), Reign: r.killed.Sub(r.elected)})
}

// replace starts another replica for one that has ended.
func (r *Republic) replace(e crew.Event[message]) error {
	if !e.From.Killed() {
		r.Watch(Progress{Kind: "failed", PID: e.From.PID(), Err: e.Failure()})
		if r.leader == e.From {
			r.term = nil // no leader is left to be killed then
		}
	}
	if err := r.crew.Ended(e); err != nil {
		return err
	}
	_, err := r.crew.Start(r.Command)
	return err
}
