package cli

import "github.com/zkcoord/zkcoord/coord"

// nodePath is a path of a recipe on the command line. One that cannot be right is refused before anything is done.
type nodePath string

// Validate is called by kong.
func (p nodePath) Validate() error { return coord.CheckPath(string(p)) }
