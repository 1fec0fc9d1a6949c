package session

import "time"

// A client without a connection is logged after warnAfter, or warnFirst if
// there never was one, and then every warnEvery.
const (
	warnFirst = time.Second
	warnAfter = 5 * time.Second
	warnEvery = 30 * time.Second
)

// outage is a time without a connection, over as many sessions as it lasts.
// Only the Keeper's goroutine uses it.
type outage struct {
	since, next time.Time
	opened      time.Time // the connection before it, if there was one
}

// attend warns if that is due at now, and returns in how long to look again.
func (o *outage) attend(s *Session, now time.Time) time.Duration {
	s.mu.Lock()
	isUp, downSince, opened := s.isUp, s.downSince, s.opened
	s.mu.Unlock()
	if isUp || !opened.IsZero() && !opened.Equal(o.opened) { // a connection, though it may have gone since
		*o = outage{opened: opened}
	}
	if isUp {
		return warnAfter
	}
	log, patience := s.cfg.Waiting, warnFirst
	if !o.opened.IsZero() {
		log, patience = s.log, warnAfter
	}
	if o.since.IsZero() {
		o.since, o.next = downSince, downSince.Add(patience)
	}
	if !now.Before(o.next) {
		log.Warn("no connection to any server", "for", now.Sub(o.since).Round(time.Second), "err", s.search.LastErrors())
		o.next = now.Add(warnEvery)
	}
	return o.next.Sub(now)
}
