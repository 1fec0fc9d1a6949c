package term

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Plural is "1 process", "2 processes".
func Plural(n int, one, many string) string {
	return fmt.Sprintf("%d %s", n, Pick(n, one, many))
}

// Briefly is an error with its message on one line: a joined error has several.
func Briefly(err error) error { return errors.New(strings.ReplaceAll(err.Error(), "\n", "; ")) }

func Pick(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// Plain is a name from the servers as a terminal may show it: quoted if it has
// invisible characters, or some that need escaping.
func Plain(name string) string {
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

// Age is a number of seconds as people write it.
func Age(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// Seconds is d in seconds, to the millisecond.
func Seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1000) / 1000 }

// Measured is d in milliseconds, rounded as it is printed, or null in JSON if
// nothing was measured.
func Measured(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	ms := d.Round(time.Millisecond).Milliseconds()
	return &ms
}

func SinceThen(t time.Time) *float64 {
	if t.IsZero() {
		return nil
	}
	age := Seconds(max(0, time.Since(t)))
	return &age
}

// Ago is how long ago an instant was, as people write it.
func Ago(t time.Time) string {
	if age := SinceThen(t); age != nil {
		return Age(*age)
	}
	return "unknown"
}

// Program is the name that this program was called by; it has several.
var Program = "zkcoord"

var programName = regexp.MustCompile(`^\w[\w.+-]*$`)

// CalledBy is the name of the program at the beginning of a command line, or
// Program if that name cannot be shown.
func CalledBy(args []string) string {
	if len(args) > 0 {
		if name := strings.TrimSuffix(filepath.Base(args[0]), ".exe"); programName.MatchString(name) {
			return name
		}
	}
	return Program
}

// Visible escapes the invisible characters of a text for people, which may
// quote the servers; lines stay lines.
func Visible(text string) string {
	var seen strings.Builder
	for _, r := range text {
		if r == '\n' || strconv.IsPrint(r) {
			seen.WriteRune(r)
		} else {
			seen.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return seen.String()
}
