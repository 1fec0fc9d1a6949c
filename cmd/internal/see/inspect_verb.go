package see

import (
	"context"

	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/look"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
)

type InspectVerb struct {
	Path conn.NodePath `arg:"" predictor:"path" help:"The path of a lock, an election, a double barrier or a queue."`
}

// Run shows the line at the path.
func (v *InspectVerb) Run(s *term.Streams, c *conn.Connection) error {
	return c.With(func(ctx context.Context, client *coord.Client) error {
		return show(ctx, client, v.Path, look.NewAddressBook(c), new(look.Sightings), s, s.Page())
	})
}

// show writes what there is at the path.
func show(ctx context.Context, client *coord.Client, path conn.NodePath, book *look.AddressBook, seen *look.Sightings, s *term.Streams, to term.Page) error {
	r, err := look.Examine(ctx, client, path)
	if err == nil {
		err = r.Count(ctx, client)
	}
	if err != nil {
		return err
	}
	book.Fill(ctx, &r)
	over := seen.Look()
	seen.Date(&r)
	over()
	r.Odd = r.Oddities()
	if s.JSON {
		s.Told = true
		return term.WriteJSON(s.Out, r)
	}
	return r.Table(to)
}
