//go:build linux || darwin || freebsd || openbsd

package demo

import (
	"encoding/xml"
	"flag"
	"fmt"
	"html"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
)

var update = flag.Bool("update", false, "record the demo anew, for the documents")

const recording = "../../../docs/drawings/stock.svg"

// told is a line of the demo, and when it came.
type told struct {
	at   time.Duration
	text string
}

// record runs the demo, and returns what it prints for people.
func record(t *testing.T) (lines []told) {
	p := cmdtest.Start(t, "demo", "stock")
	begun := time.Now()
	for {
		line := p.Line()
		if strings.HasPrefix(line, "{") {
			return lines
		}
		lines = append(lines, told{time.Since(begun), line})
	}
}

// changing is what differs from run to run.
var changing = regexp.MustCompile(
	`stock-[a-z0-9]+|[0-9]+(\.[0-9]+)?(ms|s)?|(after|before) it had? ?(read|wrote|written) the file`)

func shape(lines []string) []string {
	shapes := make([]string, len(lines))
	for i, line := range lines {
		shapes[i] = strings.Join(strings.Fields(changing.ReplaceAllString(line, "…")), " ")
	}
	return shapes
}

// The README's recording is what the demo tells.
func TestTheRecordingShowsWhatTheDemoTells(t *testing.T) {
	lines := record(t)
	if *update {
		require.NoError(t, os.WriteFile(recording, []byte(draw(lines)), 0o644)) //nolint:gosec // for all to read
	}
	drawn, err := os.ReadFile(recording)
	require.NoError(t, err)
	var picture struct {
		Lines []string `xml:"g>text"`
	}
	require.NoError(t, xml.Unmarshal(drawn, &picture))
	var is []string
	for _, line := range lines {
		if line.text != "" {
			is = append(is, line.text)
		}
	}
	require.Equal(t, shape(is), shape(picture.Lines), "go test ./cmd/internal/demo -run TheRecording -update")
}

const (
	lineHeight = 22
	charWidth  = 8.43 // of a monospaced font at 14 px
	margin     = 20
	rest       = 5 * time.Second // how long the end is shown before the recording begins again
)

var sold = regexp.MustCompile(`([0-9]+) sold|^ +sold ([0-9]+)`)

// draw draws a terminal in which each line appears when it came, over a bar of
// the units sold. A reader who prefers no motion sees all lines at once.
func draw(lines []told) string {
	width := 0
	for _, line := range lines {
		width = max(width, utf8.RuneCountInString(line.text))
	}
	loop := lines[len(lines)-1].at + rest
	percent := func(at time.Duration) float64 { return 100 * float64(at) / float64(loop) }
	wide, high := 2*margin+int(charWidth*float64(width)), 2*margin+lineHeight*(len(lines)+1)
	all := float64(wide - 2*margin)

	var style, body, bar strings.Builder
	bar.WriteString("0%{width:0}")
	for i, line := range lines {
		if line.text == "" {
			continue
		}
		color := "#d5dbe3"
		switch {
		case strings.Contains(line.text, "✗"):
			color = "#ff8f85"
		case strings.Contains(line.text, "✓"):
			color = "#8ed99b"
		}
		from := percent(line.at)
		fmt.Fprintf(&style, "@keyframes l%d{0%%,%.2f%%{opacity:0}%.2f%%,100%%{opacity:1}}\n", i, from, from+0.01)
		fmt.Fprintf(&body,
			"    <text class=\"l\" style=\"animation-name:l%d\" x=\"%d\" y=\"%d\" fill=\"%s\" xml:space=\"preserve\">%s</text>\n",
			i, margin, margin+lineHeight*(i+1)-6, color, html.EscapeString(line.text))
		if found := sold.FindStringSubmatch(line.text); found != nil {
			n, _ := strconv.Atoi(found[1] + found[2])
			fmt.Fprintf(&bar, "%.2f%%{width:%.0fpx}", from, all*float64(n)/500)
		}
	}
	fmt.Fprintf(&bar, "100%%{width:%.0fpx}", all)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" role="img">
  <title>coorddemo demo stock: eight processes sell a stock from one file, three of them are killed, and nothing is sold twice</title>
  <style>
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.l,.bar{animation-duration:%.1[3]fs;animation-iteration-count:infinite;animation-timing-function:linear}
.bar{animation-name:bar}
@media (prefers-reduced-motion:reduce){.l,.bar{animation:none}}
@keyframes bar{%[4]s}
%[5]s</style>
  <rect width="%[1]d" height="%[2]d" rx="8" fill="#171b21"/>
  <g>
%[6]s  </g>
  <rect x="%[7]d" y="%[8]d" width="%.0[9]f" height="8" rx="4" fill="#2d333b"/>
  <rect class="bar" x="%[7]d" y="%[8]d" width="%.0[9]f" height="8" rx="4" fill="#8ed99b"/>
</svg>
`, wide, high, loop.Seconds(), bar.String(), style.String(), body.String(), margin, high-margin-8, all)
}
