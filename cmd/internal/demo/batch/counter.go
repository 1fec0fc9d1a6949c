package batch

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/zkcoord/zkcoord/cmd/internal/demo/crew"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
)

// Counter is one counting process.
type Counter struct {
	Members int
	Path    string // below it is the barrier
	Client  *coord.Client
	In      io.Reader // the names of the files, in a line of JSON; at its end the counter ends
	Out     io.Writer // to the parent
}

// What a counting process reports.
const (
	roundEntered    = "entered"
	roundIncomplete = "incomplete"
	roundComplete   = "complete"
	roundMerged     = "merged"
)

// message is what a counting process reports to its parent.
type message struct {
	What    string `json:"what"`
	Round   int64  `json:"round"`
	Index   int    `json:"index"`
	Files   int    `json:"files"`   // complete: its own; merged: all
	Words   int    `json:"words"`   // likewise
	Missing int    `json:"missing"` // incomplete
}

// share is what a member has counted.
type share struct {
	Files int `json:"files"`
	Words int `json:"words"`
}

// thinks is how long a share takes at least, for a spectator to follow.
const thinks = 300 * time.Millisecond

// Serve takes part in rounds until one is complete, and then waits for the end
// of In.
func (c *Counter) Serve(ctx context.Context) error {
	in := bufio.NewReader(c.In)
	var files []string
	line, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &files)
	}
	if err != nil {
		return fmt.Errorf("the list of files: %w", err)
	}
	ctx, cancel := crew.UntilEOF(ctx, in)
	defer cancel()
	err = c.count(ctx, files)
	if err == nil {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return nil // the demonstration is over
	}
	return err
}

func (c *Counter) count(ctx context.Context, files []string) error {
	b, err := doublebarrier.New(c.Client, c.Path+"/barrier", c.Members, doublebarrier.WaitForNextRound())
	if err != nil {
		return err
	}
	for {
		err := c.round(ctx, b, files)
		if !errors.Is(err, coord.ErrLost) && !errors.Is(err, doublebarrier.ErrIncomplete) {
			return err
		}
	}
}

func (c *Counter) round(ctx context.Context, b *doublebarrier.Barrier, files []string) error {
	m, err := b.Enter(ctx)
	if err != nil {
		return err
	}
	crew.Tell(c.Out, message{What: roundEntered, Round: m.Round(), Index: m.Index()})
	mine, err := count(ctx, m, files)
	if err != nil {
		_ = m.Abandon(context.Background())
		return err
	}
	data, err := json.Marshal(mine)
	if err != nil {
		panic(err) // it is two numbers
	}
	shares, err := m.Gather(ctx, data)
	var missing *doublebarrier.IncompleteError
	switch {
	case errors.As(err, &missing):
		crew.Tell(c.Out, message{What: roundIncomplete, Round: m.Round(), Index: m.Index(), Missing: len(missing.Missing)})
	case err == nil:
		crew.Tell(c.Out, message{What: roundComplete, Round: m.Round(), Index: m.Index(), Files: mine.Files, Words: mine.Words})
		if m.Index() == 0 {
			return c.merge(m, shares)
		}
	}
	return err
}

// count counts every n-th file, from the index on.
func count(ctx context.Context, m *doublebarrier.Member, files []string) (share, error) {
	mine := share{}
	pause := thinks / time.Duration(len(files)/m.Count()+1)
	for i := m.Index(); i < len(files); i += m.Count() {
		words, err := CountWords(files[i])
		if err != nil {
			return mine, err
		}
		mine.Files++
		mine.Words += words
		crew.Rest(ctx, pause)
	}
	crew.Rest(ctx, pause)
	return mine, context.Cause(ctx)
}

// merge adds up the shares of a round that is complete.
func (c *Counter) merge(m *doublebarrier.Member, shares [][]byte) error {
	all := share{}
	for index, data := range shares {
		var one share
		if err := json.Unmarshal(data, &one); err != nil {
			return fmt.Errorf("the share of process %d, %q: %w", index, data, err)
		}
		all.Files += one.Files
		all.Words += one.Words
	}
	crew.Tell(c.Out, message{What: roundMerged, Round: m.Round(), Index: m.Index(), Files: all.Files, Words: all.Words})
	return nil
}
