package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/zkcoord/zkcoord/coord"
)

type topVerb struct {
	Every time.Duration `default:"1s" positive:"" help:"How often to look."`
	Path  nodePath      `arg:"" help:"The path of a lock, an election, a double barrier or a queue."`
}

// Run shows what inspect shows, again and again, until it is interrupted. It
// outlasts the servers.
func (v *topVerb) Run(s *streams, c *connection) error {
	ctx, calm := interruptible(context.Background())
	defer calm()
	client, err := c.open(ctx)
	if err != nil {
		return bySignal(ctx, err)
	}
	defer hangUp(client)
	for next := time.NewTicker(v.Every); ; {
		err := v.look(ctx, s, c, client)
		switch {
		case ctx.Err() != nil || errors.Is(err, syscall.EPIPE):
			return nil
		case errors.Is(err, coord.ErrNoAuth):
			return failure(err)
		case err != nil:
			s.note("%v", err)
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (v *topVerb) look(ctx context.Context, s *streams, c *connection, client *coord.Client) error {
	asking, cancel := within(ctx, c.ConnectTimeout)
	defer cancel()
	r, err := inspect(asking, client, v.Path)
	if err != nil {
		return err
	}
	if s.json {
		return writeJSON(s.out, r)
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s\n", time.Now().Format(time.TimeOnly))
	if err := r.table(&text); err != nil {
		return err
	}
	if !isTerminal(s.out) || os.Getenv("TERM") == "dumb" {
		fmt.Fprintln(&text)
		_, err = text.WriteTo(s.out)
		return err
	}
	columns, rows := size(s.out)
	_, err = io.WriteString(s.out, "\x1b[H\x1b[2J"+fitted(text.String(), columns, rows))
	return err
}

// fitted cuts a text to a screen.
func fitted(text string, columns, rows int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) >= rows {
		lines = append(lines[:max(0, rows-2)], "…")
	}
	for i, line := range lines {
		if cells := []rune(line); len(cells) > columns {
			lines[i] = string(cells[:max(0, columns-1)]) + "…"
		}
	}
	return strings.Join(lines, "\n") + "\n"
}
