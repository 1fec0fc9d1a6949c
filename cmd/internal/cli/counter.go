package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/demo/crew"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
)

// counterVerb is one process of the batch demo. It gets the names of the files on standard input.
type counterVerb struct {
	N    int
	Path nodePath `arg:""` // below it are the barrier and the counts
}

// What a counting process tells of.
const (
	roundEntered    = "entered"
	roundIncomplete = "incomplete"
	roundComplete   = "complete"
	roundMerged     = "merged"
)

// countNews is what a counting process tells.
type countNews struct {
	What    string `json:"what"`
	Round   int64  `json:"round"`
	Index   int    `json:"index"`
	Files   int    `json:"files"`   // complete: its own; merged: all
	Words   int    `json:"words"`   // likewise
	Missing int    `json:"missing"` // incomplete
}

// share is what a member has counted.
type share struct {
	Index int `json:"index"`
	Files int `json:"files"`
	Words int `json:"words"`
}

// thinks is how long a share takes at least, so that there is something to see.
const thinks = 300 * time.Millisecond

// Run takes part in rounds until one is complete, and then waits for the end of its input.
func (v *counterVerb) Run(s *streams, c *connection) error {
	in := bufio.NewReader(s.in)
	var files []string
	line, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &files)
	}
	if err != nil {
		return usageError("the list of files: %w", err)
	}
	ctx, cancel := crew.UntilEOF(context.Background(), in)
	defer cancel()
	err = v.count(ctx, s, c, files)
	if err == nil {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return nil // the demonstration is over
	}
	return err
}

func (v *counterVerb) count(ctx context.Context, s *streams, c *connection, files []string) error {
	client, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer hangUp(client)
	b, err := doublebarrier.New(client, string(v.Path)+"/barrier", v.N, doublebarrier.WaitForNextRound())
	if err != nil {
		return failure(err)
	}
	for {
		var incomplete *doublebarrier.IncompleteError
		err := v.round(ctx, s, client, b, files)
		if errors.Is(err, coord.ErrLost) || errors.As(err, &incomplete) {
			continue
		}
		return failure(err)
	}
}

func (v *counterVerb) round(ctx context.Context, s *streams, client *coord.Client, b *doublebarrier.Barrier, files []string) error {
	m, err := b.Enter(ctx)
	if err != nil {
		return err
	}
	crew.Tell(s.out, countNews{What: roundEntered, Round: m.Round(), Index: m.Index()})
	mine, err := count(ctx, m, files)
	if err == nil {
		err = v.report(ctx, m, mine)
	}
	if err != nil {
		_ = m.Abandon(context.Background())
		return err
	}
	err = m.Leave(ctx)
	var missing *doublebarrier.IncompleteError
	switch {
	case errors.As(err, &missing):
		crew.Tell(s.out, countNews{What: roundIncomplete, Round: m.Round(), Index: m.Index(), Missing: len(missing.Missing)})
	case err == nil:
		crew.Tell(s.out, countNews{What: roundComplete, Round: m.Round(), Index: m.Index(), Files: mine.Files, Words: mine.Words})
		if m.Index() == 0 {
			return v.merge(ctx, s, client, m)
		}
	}
	return err
}

// count counts every n-th file, from the index on.
func count(ctx context.Context, m *doublebarrier.Member, files []string) (share, error) {
	mine := share{Index: m.Index()}
	pause := thinks / time.Duration(len(files)/m.Count()+1)
	for i := m.Index(); i < len(files); i += m.Count() {
		words, err := countWords(files[i])
		if err != nil {
			return mine, err
		}
		mine.Files++
		mine.Words += words
		rest(ctx, pause)
	}
	rest(ctx, pause)
	return mine, context.Cause(ctx)
}

// rest lets time pass, until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (v *counterVerb) counted(round int64, index int) string {
	return fmt.Sprintf("%s/counts/%d-%d", v.Path, round, index)
}

// report writes the share where the others can read it, unless the place in the round is lost.
func (v *counterVerb) report(ctx context.Context, m *doublebarrier.Member, mine share) error {
	data, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	for {
		_, err = m.Txn(ctx, coord.CreateOp(v.counted(m.Round(), m.Index()), data, coord.Persistent))
		switch {
		case errors.Is(err, coord.ErrNodeExists):
			return nil // the reply to the first attempt was lost
		case !errors.Is(err, coord.ErrUnconfirmed) || m.Err() != nil:
			return err
		}
	}
}

// merge adds up the shares of a round that is complete.
func (v *counterVerb) merge(ctx context.Context, s *streams, client *coord.Client, m *doublebarrier.Member) error {
	all := share{}
	for index := range m.Count() {
		data, _, err := client.Get(ctx, v.counted(m.Round(), index))
		if err != nil {
			return err
		}
		var one share
		if err := json.Unmarshal(data, &one); err != nil {
			return fmt.Errorf("%s: %w", strings.TrimSpace(string(data)), err)
		}
		all.Files += one.Files
		all.Words += one.Words
	}
	crew.Tell(s.out, countNews{What: roundMerged, Round: m.Round(), Index: m.Index(), Files: all.Files, Words: all.Words})
	return nil
}
