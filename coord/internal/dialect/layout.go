package dialect

import "slices"

// Layout is how the claims of one line are named.
type Layout struct {
	Dialect Dialect
	Kinds   []string // that take part, or none if every kind does
	Any     bool     // claims of both Curator's and Kazoo's names take part, and nobody else matters
}

// Has reports whether claims of a kind take part.
func (l Layout) Has(kind string) bool { return len(l.Kinds) == 0 || slices.Contains(l.Kinds, kind) }

// Role is what a child of a line's directory is to the line.
type Role int

// The roles.
const (
	None Role = iota // it is no contender
	TakesPart
	Foreign // it contends, and cannot be honoured
)

// Read reads a child's name.
func (l Layout) Read(name string) (Name, Role) {
	if l.Dialect.IsDescribed() {
		return l.readDescribed(name)
	}
	c, known := Parse(name, l.Kinds)
	if !known {
		c, known = ParseUnknown(name)
	}
	switch takesPart := c.Dialect != Unknown && (l.Any || c.Dialect == l.Dialect) && l.Has(c.Kind); {
	case !known:
	case takesPart:
		return c, TakesPart
	case !l.Any:
		return c, Foreign
	}
	return Name{}, None
}

// readDescribed is Read in a described line, whose claims are all of one kind.
func (l Layout) readDescribed(name string) (Name, Role) {
	d := describe(l.Dialect)
	if d.err != nil {
		return Name{}, None
	}
	if seq, ok := d.parse(name); ok {
		return Name{Name: name, Kind: Lock, Sequence: seq, Dialect: l.Dialect}, TakesPart
	}
	c, known := Parse(name, nil)
	if !known {
		c, known = ParseUnknown(name)
	}
	switch {
	case !known || d.Others == IgnoreOthers:
		return Name{}, None
	case d.Others == HonourOthers:
		return Name{Name: name, Kind: Lock, Sequence: c.Sequence, Dialect: l.Dialect}, TakesPart
	}
	return c, Foreign
}

// Stem returns what the name of a new claim begins with, before its sequence
// number, and whether nothing in it distinguishes the claim from another of its
// session.
func (l Layout) Stem(kind string, session int64) (stem string, nameless bool) {
	if l.Dialect.IsDescribed() {
		d := describe(l.Dialect)
		return d.stem(session), !d.guid
	}
	return Prefix(l.Dialect, GUID(l.Dialect), kind), false
}

// Self reads the name of a claim of the line.
func (l Layout) Self(name string) (Name, bool) {
	if l.Dialect.IsDescribed() {
		c, role := l.readDescribed(name)
		return c, role == TakesPart
	}
	return Parse(name, l.Kinds)
}
