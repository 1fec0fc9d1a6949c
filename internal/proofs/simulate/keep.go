package simulate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/zkcoord/zkcoord/internal/proofs/history"
	"github.com/zkcoord/zkcoord/internal/zktest"
)

// keep writes what is known of a seed into a folder of the artefacts: its
// violations, the log of its faults, and the history.
func (res *Result) keep(trouble string) (dir string, err error) {
	parent := filepath.Join(zktest.ArtefactDir(), "simulate")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp(parent, fmt.Sprintf("seed-%d-", res.seed)); err != nil {
		return "", err
	}
	res.mu.Lock()
	notes := strings.Join(res.notes, "\n") + "\n"
	text := strings.Join(res.violations, "\n") + "\n" + trouble
	res.mu.Unlock()
	if err := os.WriteFile(filepath.Join(dir, "faults.txt"), []byte(notes), 0o644); err != nil {
		return dir, err
	}
	if err := os.WriteFile(filepath.Join(dir, "violations.txt"), []byte(text), 0o644); err != nil {
		return dir, err
	}
	f, err := os.Create(filepath.Join(dir, "history.jsonl"))
	if err != nil {
		return dir, err
	}
	if err := history.WriteJSON(f, res.rec.Records()); err != nil {
		_ = f.Close()
		return dir, err
	}
	return dir, f.Close()
}
