//go:build linux || darwin || freebsd || openbsd

package guard

import (
	"encoding/json"
	"io"
)

// outbox sends reports to an owner that may be frozen. It does not wait: what
// does not fit is dropped, but not the last report.
type outbox struct {
	events chan Event
	done   chan struct{}
}

func newOutbox(to io.Writer) *outbox {
	o := &outbox{events: make(chan Event, 16), done: make(chan struct{})}
	go func() {
		defer close(o.done)
		for encoder := json.NewEncoder(to); ; {
			e, more := <-o.events
			if !more {
				return
			}
			_ = encoder.Encode(e) // it fails only when the owner is gone, and needs no report
		}
	}()
	return o
}

// report returns false if there was no room.
func (o *outbox) report(e Event) bool {
	select {
	case o.events <- e:
		return true
	default:
		return false
	}
}

// finish sends the last report, and waits until all are sent: there is nothing
// left to watch.
func (o *outbox) finish(last Event) {
	o.events <- last
	close(o.events)
	<-o.done
}
