package history

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// shown is how many violations of one rule are told; the rest is counted.
const shown = 5

// Check applies the rules to what was recorded so far. It fails the test if
// one is violated, and keeps the history as files. It returns how many
// violations there are, and how many parts of the history no model decided.
func Check(t testing.TB, r *Recorder, rules ...Rule) (violations, undecided int) {
	t.Helper()
	records := r.Records()
	var dir string
	for _, rule := range rules {
		j := rule.Judge(records)
		if undecided += j.Undecided; j.Undecided > 0 {
			t.Logf("%s: porcupine left %d parts undecided after %v", rule.Name(), j.Undecided, judgeWithin)
		}
		if len(j.Violations) == 0 {
			continue
		}
		if violations += len(j.Violations); dir == "" {
			dir = Keep(t, r)
		}
		for i, picture := range j.pictures[:min(shown, len(j.pictures))] {
			draw(t, dir, rule, i, picture)
		}
		t.Errorf("%s: %s", rule.Name(), tell(j.Violations))
	}
	if dir != "" {
		t.Logf("the history is kept in %s", dir)
	}
	return violations, undecided
}

// tell puts the first few violations into words.
func tell(found []Violation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d violations", len(found))
	for _, v := range found[:min(shown, len(found))] {
		fmt.Fprintf(&b, "\n\t%s", v)
	}
	return b.String()
}

// Keep writes the records and the notes into a new folder of the artefacts, and
// returns its path.
func Keep(t testing.TB, r *Recorder) string {
	t.Helper()
	parent := filepath.Join(zktest.ArtefactDir(), "history")
	err := os.MkdirAll(parent, 0o755)
	var dir string
	if err == nil {
		dir, err = os.MkdirTemp(parent, fileName(t.Name())+"-")
	}
	if err == nil {
		err = write(filepath.Join(dir, "history.jsonl"), func(w io.Writer) error { return WriteJSON(w, r.Records()) })
	}
	if err == nil {
		notes := strings.Join(r.Notes(), "\n") + "\n"
		err = os.WriteFile(filepath.Join(dir, "notes.txt"), []byte(notes), 0o644)
	}
	if err != nil {
		t.Errorf("the history cannot be kept: %v", err)
	}
	return dir
}

func draw(t testing.TB, dir string, rule Rule, i int, info porcupine.LinearizationInfo) {
	t.Helper()
	name := filepath.Join(dir, fmt.Sprintf("%s-%d.html", fileName(rule.Name()), i+1))
	err := write(name, func(w io.Writer) error { return porcupine.Visualize(rule.model, info, w) })
	if err != nil {
		t.Errorf("the picture of %s cannot be kept: %v", rule.Name(), err)
	}
}

func write(path string, content func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := content(f); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// WriteJSON writes records as lines of JSON.
func WriteJSON(w io.Writer, records []Record) error {
	out := json.NewEncoder(w)
	for _, r := range records {
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// ReadJSON reads what [WriteJSON] wrote.
func ReadJSON(r io.Reader) (records []Record, err error) {
	for in := json.NewDecoder(r); ; {
		var rec Record
		if err := in.Decode(&rec); err == io.EOF {
			return records, nil
		} else if err != nil {
			return records, fmt.Errorf("history: record %d: %w", len(records)+1, err)
		}
		records = append(records, rec)
	}
}

// fileName turns a name into one for a file.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, name)
}
