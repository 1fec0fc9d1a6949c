package succession

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/demo/crew"
)

// beat is the time between two entries of a leader.
const beat = 10 * time.Millisecond

// Lead is what a replica does while it leads: it gets the term's token and a
// function that reports whether the term has been lost, and returns when ctx
// ends.
type Lead func(ctx context.Context, token int64, lost func() error) error

// Replica is one candidate process.
type Replica struct {
	Log string                                     // the file that leaders write to
	Run func(ctx context.Context, lead Lead) error // stands for election again and again
	In  io.Reader                                  // at its end the replica ends
	Out io.Writer                                  // to the parent
}

// message is what a replica reports to its parent.
type message struct {
	Leads int64 `json:"leads"` // it leads, with this token
}

// Serve runs the replica until In ends.
func (r *Replica) Serve(ctx context.Context) error {
	ctx, cancel := crew.UntilEOF(ctx, r.In)
	defer cancel()
	err := r.Run(ctx, r.lead)
	if ctx.Err() != nil {
		return nil // the demonstration is over
	}
	return err
}

// lead writes to the log until the term ends.
func (r *Replica) lead(ctx context.Context, token int64, lost func() error) error {
	log, err := os.OpenFile(r.Log, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer log.Close()
	next := time.NewTicker(beat)
	defer next.Stop()
	for number := 1; ; number++ {
		if lost() != nil {
			return nil
		}
		if err := write(log, token, os.Getpid(), number); err != nil {
			return err
		}
		if number == 1 {
			crew.Tell(r.Out, message{Leads: token})
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

// write adds a leader's entry at the file's end, in one write: entries do not
// mix.
func write(file *os.File, token int64, pid, number int) error {
	_, err := fmt.Fprintf(file, "%d %d %d\n", token, pid, number)
	return err
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
