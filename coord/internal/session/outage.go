package session

import "time"

// The log hears of a client without a connection when warnAfter has passed, and
// then every warnEvery.
const (
	warnAfter = 5 * time.Second
	warnEvery = 30 * time.Second
)

// outage is a time without a connection, over as many sessions as it lasts. The
// Keeper's goroutine has it for itself.
type outage struct{ since, next time.Time }

// attend warns if that is due at now, and returns when to look again.
func (o *outage) attend(s *Session, now time.Time) time.Duration {
	s.mu.Lock()
	isUp, downSince, trouble := s.isUp, s.downSince, s.trouble
	s.mu.Unlock()
	switch {
	case isUp:
		*o = outage{}
		return warnAfter
	case o.since.IsZero():
		o.since, o.next = downSince, downSince.Add(warnAfter)
	}
	if !now.Before(o.next) {
		s.log.Warn("no connection to any server", "for", now.Sub(o.since).Round(time.Second), "err", trouble)
		o.next = now.Add(warnEvery)
	}
	return o.next.Sub(now)
}
