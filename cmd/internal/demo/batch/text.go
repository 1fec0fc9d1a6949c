package batch

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:embed text.txt
var text string

// WriteText writes a text of the demonstration's own into a directory, each
// paragraph into a file, for where there are no other files.
func WriteText(dir string) (files []string, err error) {
	for i, paragraph := range strings.Split(text, "\n\n") {
		file := filepath.Join(dir, fmt.Sprintf("paragraph %d", i+1))
		if err := os.WriteFile(file, []byte(paragraph), 0o600); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}
