//go:build linux || darwin

package docs

import "testing"

// runbooks are staged by their headings in docs/operations.md.
var runbooks = map[string]func(){}

func runBooks(t *testing.T, bin string) {}
