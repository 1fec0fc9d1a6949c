//go:build linux || darwin || freebsd || openbsd

package demo

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
)

func TestTheDemosSpeakWellOfOneProcessAndOfNoKills(t *testing.T) {
	t.Parallel()
	files, _ := texts(t)
	for _, demo := range []struct {
		args []string
		says []string
		not  []string
	}{
		{
			[]string{"stock", "--workers", "1", "--stock", "1", "--kill", "0"},
			[]string{"1 process sells 1 unit", "The lock is /", "Every unit was sold once."},
			[]string{"SIGKILL", "apart", "though holders"},
		},
		{
			[]string{"stock", "--workers", "2", "--stock", "40", "--kill", "1", "--unsafe"},
			[]string{"2 processes sell 40 units", "Nothing keeps them apart,\nand 1 process is killed with SIGKILL"},
			[]string{"released", "the next sale came"},
		},
		{
			append([]string{"batch", "--members", "1", "--kill", "1"}, files...),
			[]string{"1 process counts the words of 5 files. It has the double barrier", "round 1: the one process is in"},
			[]string{"They meet", "all 1", "all were told"},
		},
		{
			[]string{"election", "--replicas", "1", "--kill", "0"},
			[]string{"1 process stands for election", "every few milliseconds.\n"},
			[]string{"SIGKILL"},
		},
		{
			[]string{"queue", "--producers", "1", "--consumers", "1", "--items", "1", "--kill", "0"},
			[]string{"1 process puts 1 item into", "1 other processes them one by one.\n", "Nothing was lost.\n"},
			[]string{"SIGKILL", "what the killed had"},
		},
	} {
		p := cmdtest.Start(t, append([]string{"demo"}, demo.args...)...)
		text := p.Output() + "\n"
		for _, says := range demo.says {
			require.Contains(t, text, says, strings.Join(demo.args, " "))
		}
		for _, not := range demo.not {
			require.NotContains(t, text, not, strings.Join(demo.args, " "))
		}
	}
}
