package conn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/zkcoord/zkcoord/cmd/internal/term"
	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// mostLabel is the length of the longest label, in bytes.
const mostLabel = 256

// Labelled is for the verbs whose nodes name their owner.
type Labelled struct {
	Label label `placeholder:"TEXT" help:"What others are shown of this process, with host and process id. Default: CMD's name."`
}

// label is what a user calls a process.
type label string

// Validate is called by kong.
func (l label) Validate() error {
	switch {
	case l == "":
		return fmt.Errorf("the label is empty; leave the option out for the default")
	case len(l) > mostLabel:
		return fmt.Errorf("the label has %d bytes; %d at most", len(l), mostLabel)
	case !utf8.ValidString(string(l)):
		return fmt.Errorf("the label %q is not UTF-8", string(l))
	case strings.ContainsAny(string(l), "\r\n"):
		return fmt.Errorf("the label %q must be one line", string(l))
	}
	return nil
}

// ApplyTo labels the nodes that the connection makes, by default with the name
// of the command that is run.
func (l Labelled) ApplyTo(c *Connection, command ...string) {
	c.label = l.Label
	for _, name := range command {
		c.label = cmp.Or(c.label, label(filepath.Base(name)))
	}
	if c.label.Validate() != nil { // a name need not be one line, nor UTF-8
		c.label = label(term.Program)
	}
}

// Waiting is for verbs that wait without running a command.
type Waiting struct {
	Timeout *time.Duration `placeholder:"D" positive:"" help:"Wait for D at most, connecting included, then exit with 124."`
}

// Wait runs f with a context that ends by a signal or by the timeout. The error
// of the timeout begins with late.
func (w *Waiting) Wait(c *Connection, late string, f func(ctx context.Context, client *coord.Client) error) error {
	return c.Lasting(w.Timeout, func(ctx context.Context, client *coord.Client) error {
		err := f(ctx, client)
		var known *term.ExitError
		switch {
		case err == nil || errors.As(err, &known):
			return err
		case errors.Is(err, context.DeadlineExceeded):
			return term.ExitWith(term.ExitTimeout, "%s: %w", late, err)
		}
		return term.BySignal(ctx, Failure(err))
	})
}

// NodePath is a path of a recipe on the command line. One that is invalid is
// refused before anything is done.
type NodePath string

// Validate is called by kong.
func (p NodePath) Validate() error {
	err := recipe.Check(&coord.Client{}, string(p))
	var told *coord.OpError
	if errors.As(err, &told) {
		err = told.Err // that the path was checked goes without saying
	}
	return err
}

// IsThere returns [term.Absent] if there is no node at the path.
func (p NodePath) IsThere(ctx context.Context, client *coord.Client) error {
	_, there, err := client.Exists(ctx, string(p))
	if err == nil && !there {
		err = term.Absent(string(p))
	}
	return err
}

// NoteAbsent notes on standard error that there is no node at the path, when
// the answer is "nothing": the path may be misspelt, or not used yet.
func (p NodePath) NoteAbsent(ctx context.Context, s *term.Streams, client *coord.Client) error {
	err := p.IsThere(ctx, client)
	if absent := (*term.ExitError)(nil); errors.As(err, &absent) {
		s.Note("%v", absent)
		err = nil
	}
	return err
}

// NodePaths are one path or several, with a command after them.
type NodePaths []NodePath

// Decode is called by kong. The command begins with the first word that does
// not begin with /.
func (p *NodePaths) Decode(ctx *kong.DecodeContext) error {
	*p = nil
	for len(*p) == 0 || ctx.Scan.Peek().IsValue() && strings.HasPrefix(ctx.Scan.Peek().String(), "/") {
		path, err := ctx.Scan.PopValue("path")
		if err != nil {
			return err
		}
		*p = append(*p, NodePath(path.String()))
	}
	return nil
}

// Validate is called by kong.
func (p NodePaths) Validate() error {
	for i, path := range p {
		if err := path.Validate(); err != nil {
			return err
		}
		if slices.Contains(p[:i], path) {
			return fmt.Errorf("%s is named twice, and would wait for itself", path)
		}
	}
	return nil
}

func (p NodePaths) String() string { return strings.Join(p.Words(), ", ") }

func (p NodePaths) Words() []string {
	words := make([]string, len(p))
	for i, path := range p {
		words[i] = string(path)
	}
	return words
}
