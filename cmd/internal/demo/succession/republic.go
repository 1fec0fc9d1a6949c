package succession

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/demo/crew"
	"github.com/zkcoord/zkcoord/coord/election"
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
	crew.Audience

	crew    *crew.Crew[message]
	leader  *crew.Member
	elected time.Time
	term    <-chan time.Time // the leader is killed then
	killed  time.Time        // the last kill, until there is another leader
	result  Result
}

// Result is the outcome.
type Result struct {
	Log
	Kills  int           `json:"kills"`
	MaxGap time.Duration `json:"-"` // the longest time from a kill to the next leader's first entry
}

// Run kills the leader again and again. The result is good also when there is
// an error.
func (r *Republic) Run(ctx context.Context) (Result, error) {
	if err := os.WriteFile(r.Log, nil, 0o600); err != nil {
		return Result{}, err
	}
	r.crew = crew.New[message]()
	err := r.reign(ctx)
	r.crew.Close(func(*message) {})
	log, readErr := ReadLog(r.Log)
	r.result.Log = log
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
	later := ""
	if !r.killed.IsZero() {
		gap := r.elected.Sub(r.killed)
		r.killed, r.result.MaxGap = time.Time{}, max(r.result.MaxGap, gap)
		later = fmt.Sprintf(", %v later", gap.Round(time.Millisecond))
	}
	r.Tell("  ★ process %d leads, with token %d%s", leader.PID(), token, later)
}

func (r *Republic) kill() {
	r.leader.Kill()
	r.killed, r.term = time.Now(), nil
	r.result.Kills++
	r.Tell("  ✗ process %d is killed, %v in office", r.leader.PID(), r.killed.Sub(r.elected).Round(time.Millisecond))
}

// replace starts another replica for one that has ended.
func (r *Republic) replace(e crew.Event[message]) error {
	if !e.From.Killed() {
		r.Tell("  ! a replica ended by itself: %v", e.Failure())
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

// beat is the time between two entries of a leader.
const beat = 10 * time.Millisecond

// Replica is one candidate process.
type Replica struct {
	Log      string // the file that leaders write to
	Election *election.Election
	In       io.Reader // at its end the replica ends
	Out      io.Writer // to the parent
}

// message is what a replica reports to its parent.
type message struct {
	Leads int64 `json:"leads"` // it leads, with this token
}

// Serve runs the replica until In ends.
func (r *Replica) Serve(ctx context.Context) error {
	ctx, cancel := crew.UntilEOF(ctx, r.In)
	defer cancel()
	err := r.Election.Run(ctx, nil, r.lead)
	if ctx.Err() != nil {
		return nil // the demonstration is over
	}
	return err
}

// lead writes to the log until the term ends.
func (r *Replica) lead(ctx context.Context, term *election.Term) error {
	log, err := os.OpenFile(r.Log, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer log.Close()
	next := time.NewTicker(beat)
	defer next.Stop()
	for number := 1; ; number++ {
		if term.Err() != nil {
			return nil
		}
		// In one write: entries do not mix.
		if _, err := fmt.Fprintf(log, "%d %d %d\n", term.Token(), os.Getpid(), number); err != nil {
			return err
		}
		if number == 1 {
			crew.Tell(r.Out, message{Leads: term.Token()})
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// Log is what the leaders' log says.
type Log struct {
	Entries  int `json:"entries"`
	Terms    int `json:"terms"`    // different tokens
	Overlaps int `json:"overlaps"` // entries by a former leader, after one of a newer
}

// ReadLog judges a log.
func ReadLog(path string) (Log, error) {
	file, err := os.Open(path)
	if err != nil {
		return Log{}, err
	}
	defer file.Close()
	var log Log
	newest := int64(-1)
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var token int64
		var pid, number int
		if _, err := fmt.Sscanf(lines.Text(), "%d %d %d", &token, &pid, &number); err != nil {
			return log, fmt.Errorf("entry %d of the log, %q: %w", log.Entries+1, lines.Text(), err)
		}
		log.Entries++
		switch {
		case token > newest:
			newest = token
			log.Terms++
		case token < newest:
			log.Overlaps++
		}
	}
	return log, nil
}
