package conn

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/zkcoord/zkcoord/coord"
)

// NodePath is a path of a recipe on the command line. One that is invalid is
// refused before anything is done.
type NodePath string

// Validate is called by kong.
func (p NodePath) Validate() error {
	err := coord.Check(&coord.Client{}, string(p))
	var told *coord.OpError
	if errors.As(err, &told) {
		err = told.Err // that the path was checked goes without saying
	}
	return err
}

// NodePaths are one path or several, with a command behind them.
type NodePaths []NodePath

// Decode is called by kong. What does not begin with / is the command.
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
			return fmt.Errorf("%s is there twice, and would wait for itself", path)
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
