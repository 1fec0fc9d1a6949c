package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

// examples are command lines for the help of each verb, without the program's
// name. What follows # is for people.
var examples = map[string]string{
	"demo all":      `demo all`,
	"demo stock":    "demo stock\ndemo stock --unsafe  # without the lock",
	"demo batch":    "demo batch\ndemo batch --members 8 --kill 3 README.md docs/design.md",
	"demo election": `demo election --replicas 5`,
	"demo queue":    `demo queue --items 1000 --kill 4`,
	"lock": `lock /locks/backup -- ./backup.sh
lock --try /locks/report -- make report  # not if another does it already
lock --label nightly /locks/backup -- make dump
lock --timeout 5m --shared /locks/data -- ./read.sh
lock --slots 3 /locks/licences -- ./simulate
lock /accounts/7 /accounts/3 -- ./transfer.sh  # holding both
lock /locks/build -c 'make && make install'`,
	"ls":         "ls /\nls --json /locks",
	"graph":      "graph /\ngraph --json /locks",
	"doctor":     "doctor\ndoctor --json /",
	"completion": "completion bash",
	"inspect":    "inspect /locks/backup\ninspect --json /jobs",
	"top":        `top --every 5s /jobs`,
	"held":       "held  # inside of CMD\nheld --timeout 2s --node _c_7c1f0a9e-lock-0000000041 /locks/backup\nheld --json --token 8589934612 /services/billing",
	"revoke": `revoke --wait /locks/backup
revoke --force-after 1m /locks/backup
revoke --node entry-100-0000000007 /jobs  # one item of a queue`,
	"break": "break /locks/backup\nbreak --yes --node entry-100-0000000007 /jobs",
	"elect": `elect --data 10.1.2.3:8080 /services/billing -- ./billing
elect --again /services/billing -- ./billing
elect --who /services/billing`,
	"barrier set":    `barrier set /maintenance`,
	"barrier remove": `barrier remove /maintenance`,
	"barrier wait":   `barrier wait --timeout 10m /maintenance`,
	"doublebarrier":  `doublebarrier -n 4 /batch/nightly -- ./share.sh`,
	"queue put":      "queue put /jobs one two\nqueue put --priority 5 --together /jobs < urgent.txt",
	"queue take":     `queue take --timeout 10s /jobs`,
	"queue receive":  "queue receive /jobs -- ./work.sh\nqueue receive --dead 5 --delay 30s /jobs -- ./work.sh",
	"queue len":      `queue len /jobs`,
	"queue peek":     `queue peek --json /jobs`,
	"queue dead":     `queue dead /jobs`,
	"queue bury":     `queue bury --reason 'no such image' /jobs entry-100-0000000007`,
	"queue drop":     `queue drop /jobs entry-100-0000000007`,
	"server":         "server\nserver --addr 127.0.0.1:0 --tick 100ms",
	"ui":             "ui\nui --allow-break --listen 127.0.0.1:8080 /locks",
	"exporter":       "exporter /locks /jobs",
	"version":        `version --json`,
}

// verbName is how a verb is called, without the program's name.
func verbName(verb *kong.Node) string {
	name := verb.Name
	for above := verb.Parent; above != nil && above.Type == kong.CommandNode; above = above.Parent {
		name = above.Name + " " + name
	}
	return name
}

// examplesOf is the end of a verb's help.
func examplesOf(verb *kong.Node) string {
	lines, found := examples[verbName(verb)]
	if !found {
		return ""
	}
	text := "\nExamples:\n"
	for line := range strings.Lines(lines) {
		text += fmt.Sprintf("  %s %s\n", term.Program, strings.TrimRight(line, "\n"))
	}
	return text
}
