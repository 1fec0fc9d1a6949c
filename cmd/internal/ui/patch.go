package ui

import (
	"bytes"
	"encoding/json"
)

// sights has what was seen last, an object, and the version in which each of
// its members last changed. Viewers are sent only what they do not have: a JSON
// merge patch (RFC 7396) of the object, and of the objects in it.
type sights struct {
	last    json.RawMessage
	version int // 1 is the first
	floor   int // what has changed since older versions is not known
	parts   map[string]*part
}

// part is the value of a member of the object.
type part struct {
	value   json.RawMessage
	changed int              // the version in which it last changed
	members map[string]*part // if it is an object itself; members that are gone have no value
	gone    int              // how many members are gone and remembered
}

// mostGone is how many members that are gone are remembered.
const mostGone = 20_000

func (s *sights) take(seen json.RawMessage) {
	s.version++
	s.last = seen
	now := membersOf(seen)
	if now == nil || s.parts == nil || update(s.parts, now, s.version) > 0 {
		s.parts, s.floor = map[string]*part{}, s.version
		update(s.parts, now, s.version)
	}
	for name, value := range now {
		p := s.parts[name]
		if p.changed != s.version {
			continue
		}
		members := membersOf(value)
		switch {
		case members == nil:
			p.members, p.gone = nil, 0
			continue
		case p.gone > mostGone:
			s.floor = s.version
			fallthrough
		case p.members == nil:
			p.members, p.gone = map[string]*part{}, 0
		}
		p.gone += update(p.members, members, s.version)
	}
}

// update brings parts up to date, and returns how many went.
func update(parts map[string]*part, now map[string]json.RawMessage, version int) (gone int) {
	for name, p := range parts {
		if _, found := now[name]; !found && p.value != nil {
			p.value, p.changed = nil, version
			gone++
		}
	}
	for name, value := range now {
		switch p := parts[name]; {
		case p == nil:
			parts[name] = &part{value: value, changed: version}
		case !bytes.Equal(p.value, value):
			p.value, p.changed = value, version
		}
	}
	return gone
}

// membersOf are the members of an object, nil of anything else.
func membersOf(value json.RawMessage) (members map[string]json.RawMessage) {
	if len(value) > 0 && value[0] == '{' {
		_ = json.Unmarshal(value, &members)
	}
	return members
}

// since returns what has changed since a version, or everything if that is not
// known.
func (s *sights) since(version int) (seen json.RawMessage, whole bool) {
	if version < s.floor || version > s.version || len(s.parts) == 0 {
		return s.last, true
	}
	patch := map[string]any{}
	for name, p := range s.parts {
		switch {
		case p.changed <= version:
		case p.members == nil:
			patch[name] = p.value
		default:
			patch[name] = p.since(version)
		}
	}
	data, err := json.Marshal(patch)
	if err != nil { // it cannot fail: the values are JSON
		return s.last, true
	}
	return data, false
}

func (p *part) since(version int) map[string]json.RawMessage {
	changed := map[string]json.RawMessage{}
	for name, m := range p.members {
		if m.changed > version {
			changed[name] = m.value // none is null
		}
	}
	return changed
}
