//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheObjectOfAnElectionThatFailsLeavesTheOutputToTheCommand(t *testing.T) {
	addr := silentServer(t)
	for verb, ofCommand := range map[string]bool{
		"elect -c true /e": true, "elect -vc true /e": true, "elect -vctrue /e": true, "elect --command true /e": true,
		"elect /e true": true, "elect /e -- true": true, "elect -- /e true": true,
		"elect --who /e": false, "elect --observe -- /e": false,
		// These cannot be right.
		"elect -vc true --timeout x /e": true, "elect -vc true e": true, "elect --who --again /e": false,
		"elect --who -v /e": false, "elect --connect-timeout 0 --who /e": false,
	} {
		p := start(t, append([]string{"--json", "--zk", addr, "--connect-timeout", "0.1"}, strings.Fields(verb)...)...)
		require.Contains(t, []int{exitUnavailable, exitUsage}, p.exit(), verb)
		place := ""
		if ofCommand {
			place = " -- "
		}
		require.EqualValues(t, p.exit(), theObject(t, p, place)["status"], verb)
	}
}
