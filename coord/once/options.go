package once

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/zkcoord/zkcoord/coord/event"
	"github.com/zkcoord/zkcoord/coord/recipe"
)

// options says what this client does with jobs and records, as it stands in the
// records of its runs.
func (o *Once) options() string {
	said := []string{"any number of attempts"}
	if o.attempts > 0 {
		said[0] = fmt.Sprintf("%d attempts", o.attempts)
	}
	if o.failOnce {
		said = append(said, "one failure")
	}
	if o.keep > 0 {
		said = append(said, fmt.Sprintf("records kept for %v", o.keep))
	}
	if o.last > 0 {
		said = append(said, fmt.Sprintf("the last %d records kept", o.last))
	}
	return strings.Join(said, ", ")
}

// compare reports a record that a client with other options has written, once
// for each of these.
func (o *Once) compare(r record) {
	if own := o.options(); r.Options != "" && r.Options != own {
		recipe.ReportOnce(o.client, slog.LevelWarn, event.Event{Kind: event.Differs, Path: o.path, Err: fmt.Errorf(
			"another client uses this ledger with other options (%s) than this one (%s): each job has those of the client that comes to it", r.Options, own)})
	}
}
