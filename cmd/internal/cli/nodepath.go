package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/zkcoord/zkcoord/coord"
)

// nodePath is a path of a recipe on the command line. One that cannot be right
// is refused before anything is done.
type nodePath string

// Validate is called by kong.
func (p nodePath) Validate() error {
	err := coord.Check(&coord.Client{}, string(p))
	var told *coord.OpError
	if errors.As(err, &told) {
		err = told.Err // that the path was checked goes without saying
	}
	return err
}

// nodePaths are one path or several, with a command behind them.
type nodePaths []nodePath

// Decode is called by kong. What does not begin with / is the command.
func (p *nodePaths) Decode(ctx *kong.DecodeContext) error {
	*p = nil
	for len(*p) == 0 || ctx.Scan.Peek().IsValue() && strings.HasPrefix(ctx.Scan.Peek().String(), "/") {
		var path string
		if err := ctx.Scan.PopValueInto("path", &path); err != nil {
			return err
		}
		*p = append(*p, nodePath(path))
	}
	return nil
}

// Validate is called by kong.
func (p nodePaths) Validate() error {
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

func (p nodePaths) String() string {
	words := make([]string, len(p))
	for i, path := range p {
		words[i] = string(path)
	}
	return strings.Join(words, ", ")
}
