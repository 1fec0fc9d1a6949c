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
	Path  nodePath      `arg:"" predictor:"path" help:"The path of a lock, an election, a double barrier or a queue."`
}

// Run shows what inspect shows, again and again, until q is typed or it is
// interrupted.
func (v *topVerb) Run(s *streams, c *connection) error {
	book := &addressBook{c: c}
	return repeat(s, c, v.Every, func(ctx context.Context, client *coord.Client, s *streams, to page) error {
		return show(ctx, client, v.Path, book, s, to)
	})
}

// repeat shows something again and again, until q is typed or it is
// interrupted. It outlasts the servers. In JSON, show writes to the streams,
// otherwise to a screen.
func repeat(s *streams, c *connection, every time.Duration, show func(context.Context, *coord.Client, *streams, page) error) error {
	ctx, calm := interruptible(context.Background())
	defer calm()
	client, err := c.open(ctx)
	if err != nil {
		return bySignal(ctx, err)
	}
	defer hangUp(client)
	ctx, restore := untilQuit(ctx, s)
	defer restore()
	for next := time.NewTicker(every); ; {
		err := once(ctx, s, c, client, show)
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

func once(ctx context.Context, s *streams, c *connection, client *coord.Client, show func(context.Context, *coord.Client, *streams, page) error) error {
	asking, cancel := within(ctx, c.ConnectTimeout)
	defer cancel()
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s\n", time.Now().Format(time.TimeOnly))
	if err := show(asking, client, s, page{&text, s.page().columns}); err != nil || s.json {
		return err
	}
	if !isTerminal(s.out) || os.Getenv("TERM") == "dumb" {
		fmt.Fprintln(&text)
		_, err := text.WriteTo(s.out)
		return err
	}
	columns, rows := size(s.out)
	_, err := io.WriteString(s.out, "\x1b[H\x1b[2J"+fitted(text.String(), columns, rows))
	return err
}

// fitted cuts a text to a screen.
func fitted(text string, columns, rows int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) >= rows {
		lines = append(lines[:max(0, rows-2)], "…")
	}
	for i, line := range lines {
		lines[i] = cut(line, columns)
	}
	return strings.Join(lines, "\n") + "\n"
}
