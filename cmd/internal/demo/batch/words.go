package batch

import (
	"bufio"
	"bytes"
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// CountWords counts the words of a file as wc -w does.
func CountWords(file string) (int, error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	words := bufio.NewScanner(f)
	words.Buffer(nil, 1<<30) // a word may be long
	words.Split(bufio.ScanWords)
	n := 0
	for words.Scan() {
		n++
	}
	return n, words.Err()
}

// Bounds of what is taken without being named.
const (
	mostFiles   = 2000
	largestFile = 1 << 20
)

// OwnFiles are the text files of the repository around the current directory,
// or of that directory if there is none.
func OwnFiles() ([]string, error) {
	root, err := repository()
	if err != nil {
		return nil, err
	}
	var files []string
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // what cannot be read is left out
		case path != root && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
		case len(files) == mostFiles:
			return fs.SkipAll
		case d.Type().IsRegular() && isText(path):
			files = append(files, path)
		}
		return nil
	})
	return files, err
}

// repository is the nearest directory above the current one that has a go.mod
// or a .git, or the current one.
func repository() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := here; ; dir = filepath.Dir(dir) {
		for _, mark := range []string{"go.mod", ".git"} {
			if _, err := os.Stat(filepath.Join(dir, mark)); err == nil {
				return dir, nil
			}
		}
		if dir == filepath.Dir(dir) {
			return here, nil
		}
	}
}

// isText reports whether a file of a reasonable size begins as a text does.
func isText(path string) bool {
	info, err := os.Stat(path)
	if err != nil || info.Size() == 0 || info.Size() > largestFile {
		return false
	}
	data, err := os.ReadFile(path)
	return err == nil && utf8.Valid(data) && bytes.IndexByte(data, 0) < 0
}

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
