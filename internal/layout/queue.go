package layout

import (
	"strings"

	"github.com/zkcoord/zkcoord/coord"
)

// QueueNodes is where a queue has its nodes.
type QueueNodes struct {
	Path         string     // of the queue
	Entries      string     // the items
	Taken        string     // the claims on items, with the items' names
	Producers    string     // what finds out about lost replies
	Consumers    string     // the consumers that share the queue or wait
	Waiting      coord.Line // the idle consumers
	Dead         string     // the queue of the dead letters
	Records      string     // in a queue of dead letters: their stories
	Acknowledged string     // in a queue of dead letters: which need no look any more
}

// QueueAt returns the nodes of the queue at path. Dialects do not mix in a
// line, but they may in a queue: only the line of the idle consumers differs.
func QueueAt(d coord.Dialect, path string) QueueNodes {
	waiting := path + "/waiting"
	if d == coord.Kazoo {
		waiting += "-kazoo"
	}
	return QueueNodes{
		path, path + "/entries", path + "/taken", path + "/producers", path + "/consumers",
		coord.Line{Dir: waiting, AnyDialect: true},
		path + "/dead", path + "/records", path + "/acknowledged",
	}
}

// ConsumerOptions stands in the name of a consumer's node before its options.
const ConsumerOptions = "-with-"

// OptionsOf returns what the consumer with this name does with items that were
// delivered in vain, or "" if the consumer is of an earlier version.
func OptionsOf(name string) string {
	_, options, _ := strings.Cut(name, ConsumerOptions)
	return options
}
