package cli

import (
	"errors"

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
