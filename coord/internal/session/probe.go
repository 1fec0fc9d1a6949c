package session

import "time"

// probe sends a write that changes nothing. It does not pass through the client
// library, in whose queue it would stand behind all other requests; nor does
// its reply.
func (w *wire) probe(xid int32) { _, _ = w.Write(probeFrame(xid)) }

// nextProbe notes that a probe begins and returns its xid; s.mu is held.
func (s *Session) nextProbe(now time.Time) (xid int32) {
	s.probed = now
	return xidProbe - s.nextNumber()
}

// probeFrame is a transaction of one check, as [Session.Flush] sends it.
func probeFrame(xid int32) []byte {
	b := appendInt32(appendInt32(nil, xid), opMulti)
	b = appendMultiHeader(b, opCheck, 0)
	b = appendInt32(appendString(b, "/"), -1) // any version
	return withLength(appendMultiHeader(b, -1, 1))
}

// appendMultiHeader appends what stands before an operation of a transaction,
// and at its end.
func appendMultiHeader(b []byte, op int32, done byte) []byte {
	return appendInt32(append(appendInt32(b, op), done), -1)
}
