package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
)

// counterVerb is one process of the batch demo. It gets the names of the files on standard input.
type counterVerb struct {
	N    int
	Path nodePath `arg:""` // below it are the barrier and the counts
}

// share is what a member has counted.
type share struct {
	Index int `json:"index"`
	Files int `json:"files"`
	Words int `json:"words"`
}

// thinks is how long a share takes at least, so that there is something to see.
const thinks = 300 * time.Millisecond

// Run takes part in rounds until one is complete. What happens is told line by line.
func (v *counterVerb) Run(s *streams, c *connection) error {
	var files []string
	if err := json.NewDecoder(s.in).Decode(&files); err != nil {
		return usageError("the list of files: %w", err)
	}
	client, err := c.open(context.Background())
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
		err := v.round(s, client, b, files)
		if errors.Is(err, coord.ErrLost) || errors.As(err, &incomplete) {
			continue
		}
		return failure(err)
	}
}

func (v *counterVerb) round(s *streams, client *coord.Client, b *doublebarrier.Barrier, files []string) error {
	ctx := context.Background()
	m, err := b.Enter(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(s.out, "entered", m.Round(), m.Index())
	mine, err := count(m, files)
	if err == nil {
		err = v.report(ctx, m, mine)
	}
	if err != nil {
		_ = m.Abandon(ctx)
		return err
	}
	err = m.Leave(ctx)
	var incomplete *doublebarrier.IncompleteError
	switch {
	case errors.As(err, &incomplete):
		fmt.Fprintln(s.out, "incomplete", m.Round(), m.Index(), len(incomplete.Missing))
	case err == nil:
		fmt.Fprintln(s.out, "complete", m.Round(), m.Index(), mine.Files, mine.Words)
		if m.Index() == 0 {
			return v.merge(ctx, s, client, m)
		}
	}
	return err
}

// count counts every n-th file, from the index on.
func count(m *doublebarrier.Member, files []string) (share, error) {
	mine := share{Index: m.Index()}
	pause := thinks / time.Duration(len(files)/m.Count()+1)
	for i := m.Index(); i < len(files); i += m.Count() {
		words, err := countWords(files[i])
		if err != nil {
			return mine, err
		}
		mine.Files++
		mine.Words += words
		time.Sleep(pause)
	}
	time.Sleep(pause)
	return mine, nil
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
	fmt.Fprintln(s.out, "merged", m.Round(), m.Index(), all.Files, all.Words)
	return nil
}
