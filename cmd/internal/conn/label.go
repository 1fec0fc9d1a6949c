package conn

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

// mostLabel is the length of the longest label, in bytes.
const mostLabel = 256

// Labelled is for the verbs that make nodes which tell whose they are.
type Labelled struct {
	Label label `placeholder:"TEXT" help:"What inspect, ls, graph and the others call this process, along with host and process id. Default: the name of CMD, or else of this program."`
}

// label is what a user calls a process.
type label string

// Validate is called by kong.
func (l label) Validate() error {
	switch {
	case l == "":
		return fmt.Errorf("the label is empty; leave the option out for the usual one")
	case len(l) > mostLabel:
		return fmt.Errorf("the label has %d bytes; %d at most", len(l), mostLabel)
	case !utf8.ValidString(string(l)):
		return fmt.Errorf("the label %q is not UTF-8", string(l))
	case strings.ContainsAny(string(l), "\r\n"):
		return fmt.Errorf("the label %q must be one line", string(l))
	}
	return nil
}

// ApplyTo has the nodes that the connection makes tell the label, or else the
// name of the command that is run.
func (l Labelled) ApplyTo(c *Connection, command ...string) {
	c.label = l.Label
	for _, name := range command {
		c.label = cmp.Or(c.label, label(filepath.Base(name)))
	}
	if c.label.Validate() != nil { // a name need not be one line, nor UTF-8
		c.label = label(term.Program)
	}
}
