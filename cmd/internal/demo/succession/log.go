package succession

import (
	"bufio"
	"fmt"
	"os"
)

// Log is what the leaders' log says.
type Log struct {
	Entries  int `json:"entries"`
	Terms    int `json:"terms"`    // different tokens
	Overlaps int `json:"overlaps"` // entries by a former leader, after one of a newer
}

// write adds a leader's entry at the file's end, in one write: entries do not
// mix.
func write(file *os.File, token int64, pid, number int) error {
	_, err := fmt.Fprintf(file, "%d %d %d\n", token, pid, number)
	return err
}

// ReadLog judges a log.
func ReadLog(path string) (Log, error) {
	file, err := os.Open(path)
	if err != nil {
		return Log{}, err
	}
	defer file.Close()
	var log Log
	newest := int64(-1)
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var token int64
		var pid, number int
		if _, err := fmt.Sscanf(lines.Text(), "%d %d %d", &token, &pid, &number); err != nil {
			return log, fmt.Errorf("entry %d of the log, %q: %w", log.Entries+1, lines.Text(), err)
		}
		log.Entries++
		switch {
		case token > newest:
			newest = token
			log.Terms++
		case token < newest:
			log.Overlaps++
		}
	}
	return log, nil
}
