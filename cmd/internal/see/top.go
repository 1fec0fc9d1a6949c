package see

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

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
)

type InspectVerb struct {
	Path conn.NodePath `arg:"" predictor:"path" help:"The path of a lock, an election, a double barrier or a queue."`
}

// Run shows what is at the path.
func (v *InspectVerb) Run(s *term.Streams, c *conn.Connection) error {
	d := c.LineDialect()
	return c.With(func(ctx context.Context, client *coord.Client) error {
		r, err := examine(ctx, client, d, v.Path, look.NewAddressBook(c), new(look.Sightings))
		if err != nil {
			return err
		}
		return show(r, s, s.Page())
	})
}

// examine reports what is at the path, with addresses, silence and oddities.
func examine(
	ctx context.Context, client *coord.Client, d coord.Dialect, path conn.NodePath, book *look.AddressBook,
	seen *look.Sightings,
) (look.Report, error) {
	r, err := look.Examine(ctx, client, d, path)
	if err == nil {
		err = r.Count(ctx, client)
	}
	if err != nil {
		return r, err
	}
	book.Fill(ctx, &r)
	over := seen.Look()
	seen.Date(&r)
	over()
	r.Odd = r.Oddities()
	return r, nil
}

func show(r look.Report, s *term.Streams, to term.Page) error {
	if s.JSON {
		return term.WriteJSON(s.Out, r)
	}
	r.Table(to)
	return nil
}

type TopVerb struct {
	Every time.Duration  `default:"1s" positive:"" help:"How often to look."`
	Since *time.Duration `placeholder:"D" positive:"" help:"Draw the last D (up to 2h) of what this process saw. On a terminal the default is 5m; elsewhere nothing is drawn without it."`
	Path  conn.NodePath  `arg:"" predictor:"path" help:"The path of a lock, an election, a double barrier or a queue."`
}

// Validate is called by kong.
func (v *TopVerb) Validate() error {
	if v.Since != nil && *v.Since > keepPast {
		return fmt.Errorf("--since %v: no more than %v is remembered", *v.Since, keepPast)
	}
	return nil
}

// drawn is how much of the past top draws; 0: none.
func (v *TopVerb) drawn(s *term.Streams) time.Duration {
	switch {
	case s.JSON:
		return 0
	case v.Since != nil:
		return *v.Since
	case hasScreen(s):
		return 5 * time.Minute
	}
	return 0
}

// Run shows what inspect shows, and the past, again and again, until q is typed
// or it is interrupted.
func (v *TopVerb) Run(s *term.Streams, c *conn.Connection) error {
	book, seen, d := look.NewAddressBook(c), new(look.Sightings), c.LineDialect()
	since, past := v.drawn(s), newRecorder(nil, v.Every)
	return repeat(s, c, v.Every, func(ctx context.Context, client *coord.Client, s *term.Streams, to term.Page) error {
		began, stamps := time.Now(), map[string]string(nil)
		if past.client = client; since > 0 {
			stamps = past.stamps(ctx)
		}
		r, err := examine(ctx, client, d, v.Path, book, seen)
		if err != nil {
			return err
		}
		if since > 0 {
			past.see(&look.Survey{Recipes: []look.Report{r}}, stamps, book, began)
			newTimeline(past.history, r.Path, time.Now(), since).write(to)
		}
		return show(r, s, to)
	})
}

// hasScreen reports whether the output is a terminal that can be erased.
func hasScreen(s *term.Streams) bool { return term.IsTerminal(s.Out) && os.Getenv("TERM") != "dumb" }

// repeat shows something again and again, until q is typed or it is
// interrupted. It goes on when servers fail. In JSON, show writes to the
// streams, otherwise to a page.
func repeat(
	s *term.Streams, c *conn.Connection, every time.Duration,
	show func(context.Context, *coord.Client, *term.Streams, term.Page) error,
) error {
	return c.Lasting(nil, func(ctx context.Context, client *coord.Client) error {
		ctx, restore := term.UntilQuit(ctx, s)
		defer restore()
		for next := time.NewTicker(every); ; {
			err := once(ctx, s, c, client, show)
			switch {
			case ctx.Err() != nil || errors.Is(err, syscall.EPIPE):
				return nil
			case errors.Is(err, coord.ErrNoAuth):
				return conn.Failure(err)
			case err != nil:
				s.Note("%v", err)
			}
			select {
			case <-next.C:
			case <-ctx.Done():
				return nil
			}
		}
	})
}

func once(
	ctx context.Context, s *term.Streams, c *conn.Connection, client *coord.Client,
	show func(context.Context, *coord.Client, *term.Streams, term.Page) error,
) error {
	asking, cancel := conn.Within(ctx, c.ConnectTimeout)
	defer cancel()
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s\n", time.Now().Format(time.TimeOnly))
	if err := show(asking, client, s, term.Page{Writer: &text, Columns: s.Page().Columns}); err != nil || s.JSON {
		return err
	}
	if !hasScreen(s) {
		fmt.Fprintln(&text)
		_, err := text.WriteTo(s.Out)
		return err
	}
	columns, rows := term.Size(s.Out)
	_, err := io.WriteString(s.Out, "\x1b[H\x1b[2J"+fitted(text.String(), columns, rows))
	return err
}

// fitted cuts a text to a screen.
func fitted(text string, columns, rows int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) >= rows {
		lines = append(lines[:max(0, rows-2)], "…")
	}
	for i, line := range lines {
		lines[i] = term.Cut(line, columns)
	}
	return strings.Join(lines, "\n") + "\n"
}
