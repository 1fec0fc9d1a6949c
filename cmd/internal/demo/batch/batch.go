// Package batch is the job of "demo batch": several processes meet at a double
// barrier, count the words of a share of some files each, meet again, and one
// adds up. One is killed in the middle of it: then all that are left learn that
// the round is incomplete, none adds up, and with a replacement they do it
// again.
package batch

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/zkcoord/zkcoord/cmd/internal/demo/crew"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

// Batch is the counting processes, and their reports.
type Batch struct {
	Members int
	Kills   int
	Files   []string
	Command func(id int) (*exec.Cmd, error) // starts a Counter on its stdin and stdout
	crew.Audience

	crew    *crew.Crew[message]
	round   int64                // the newest
	members map[int]*crew.Member // of that round, by index
	told    int                  // members that have reported its end
	victims int                  // members killed in it
	merged  bool
	result  Result
}

// Result is the outcome.
type Result struct {
	Words    int `json:"words"`    // as merged by one of the processes
	Expected int `json:"expected"` // as counted by this one
	Rounds   int `json:"rounds"`
	Kills    int `json:"kills"`
}

// Run lets the processes count until a round is complete, or ctx ends, which is
// an error. The result is good in any case.
func (b *Batch) Run(ctx context.Context) (Result, error) {
	b.crew, b.members = crew.New[message](), map[int]*crew.Member{}
	err := b.run(ctx)
	b.crew.Close(func(*message) {})
	b.result.Rounds = int(b.round)
	for _, file := range b.Files {
		words, failed := CountWords(file)
		b.result.Expected += words
		err = errors.Join(err, failed)
	}
	return b.result, err
}

func (b *Batch) run(ctx context.Context) error {
	for range b.Members {
		if err := b.start(); err != nil {
			return err
		}
	}
	return b.crew.Until(ctx, func() bool { return b.merged && b.told >= b.Members-b.victims }, b.hear)
}

// start runs a counting process, which gets the names of the files.
func (b *Batch) start() error {
	m, err := b.crew.Start(b.Command)
	if err != nil {
		return err
	}
	files, err := json.Marshal(b.Files)
	if err == nil {
		m.Say(string(files))
	}
	return err
}

// hear handles a process's message, or its end.
func (b *Batch) hear(e crew.Event[message]) error {
	if e.Message == nil {
		if err := b.crew.Ended(e); err != nil || e.From.Killed() {
			return err
		}
		return e.Failure()
	}
	news := e.Message
	if news.Round > b.round {
		b.round, b.told, b.victims = news.Round, 0, 0
		clear(b.members)
	}
	switch news.What {
	case roundEntered:
		b.members[news.Index] = e.From
		return b.entered()
	case roundIncomplete:
		if b.told++; b.told == 1 {
			left := b.Members - news.Missing
			b.Tell("  ! round %d is over and incomplete: %s told so, and nobody adds up", news.Round,
				term.Pick(left, "the one that is left was", fmt.Sprintf("all %d that are left were", left)))
		}
	case roundComplete:
		b.told++
		b.Tell("  ✓ process %d counted %d words in %s", news.Index, news.Words, term.Plural(news.Files, "file", "files"))
	case roundMerged:
		b.merged, b.result.Words = true, news.Words
	}
	return nil
}

// entered reports a round that all have entered, and kills one of them if that
// is due.
func (b *Batch) entered() error {
	if len(b.members) < b.Members {
		return nil
	}
	who := term.Pick(b.Members, "the one process is", fmt.Sprintf("all %d are", b.Members))
	b.Tell("  ▶ round %d: %s in", b.round, who)
	if b.result.Kills == b.Kills {
		return nil
	}
	victim := b.members[b.Members-1]
	victim.Kill()
	b.result.Kills++
	b.victims++
	b.Tell("  ✗ killed process %d (pid %d) while it counted", b.Members-1, victim.PID())
	return b.start()
}

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
		case d.Type().IsRegular() && isText(path) && !isOurOutput(path):
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

// isOurOutput reports whether this process writes the file, which grows while
// it is counted.
func isOurOutput(path string) bool {
	file, err := os.Stat(path)
	if err != nil {
		return false
	}
	for _, output := range []*os.File{os.Stdout, os.Stderr} {
		if ours, err := output.Stat(); err == nil && os.SameFile(file, ours) {
			return true
		}
	}
	return false
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
