package term

import (
	"path/filepath"
	"regexp"
	"strings"
)

// Program is the name that this program was called by; it has several.
var Program = "zkcoord"

var programName = regexp.MustCompile(`^\w[\w.+-]*$`)

// CalledBy is the name of the program at the beginning of a command line, if it
// is one that can be shown.
func CalledBy(args []string) string {
	if len(args) == 0 {
		return Program
	}
	name := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	if !programName.MatchString(name) {
		return Program
	}
	return name
}
