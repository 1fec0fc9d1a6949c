package dialect

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Description says how the claims of a line are named that is neither Curator's
// nor Kazoo's: the line of a lock of your own, whose programs and this module's
// then exclude each other. Such a line is exclusive: names of other recipes do
// not say who shares.
type Description struct {
	// Prefix is what the names of claims begin with, before the ten digits that
	// the server appends. In braces, it may have {session}, the decimal number
	// of the session, or {session:hex}, its 16 hexadecimal digits; {guid}, a
	// UUID; and {label:TEXT}, which stands for any text, and for TEXT in the
	// names of our claims. Without a {guid}, see [Dialect] for what that costs.
	Prefix string
	// Others says what the other children are whose names end with the ten
	// digits of a sequence number.
	Others Others
	// Revoke is what a request to give up consists of, such as "unlock", or ""
	// if no claim is asked to.
	Revoke string
}

// Others is what the children of a line's directory are whose names end with a
// sequence number and do not begin as its claims' do.
type Others int

// The others.
const (
	// RefuseOthers: contenders that cannot be honoured. A claim that comes
	// after one is refused. The default.
	RefuseOthers Others = iota
	// HonourOthers: contenders like any: the line is every child's.
	HonourOthers
	// IgnoreOthers: claims of other lines in the same directory.
	IgnoreOthers
)

var othersWords = map[string]Others{"refuse": RefuseOthers, "honour": HonourOthers, "ignore": IgnoreOthers}

// The dialects that have a name.
const (
	// ZooKeeper is the layout of ZooKeeper's own WriteLock recipe.
	ZooKeeper Dialect = "zookeeper"
	// Numbers is the layout of claims that have no prefix at all.
	Numbers Dialect = "numbers"
)

// Named returns the layout of "<name>_lock_".
func Named(name string) Dialect { return Dialect(namedForm + name) }

// The forms in which a dialect is written.
const (
	namedForm  = "name="
	prefixForm = "prefix="
	othersForm = ",others="
	revokeForm = ",revoke="
)

// Dialect returns the description as a dialect, whose text describes it.
func (d Description) Dialect() Dialect {
	text := prefixForm + d.Prefix
	for word, o := range othersWords {
		if o == d.Others && o != RefuseOthers {
			text += othersForm + word
		}
	}
	if d.Revoke != "" {
		text += revokeForm + d.Revoke
	}
	return Dialect(text)
}

// described is a description that was read.
type described struct {
	Description
	shape *regexp.Regexp // of the claims' names; what it captures is the number
	guid  bool           // the names have one
	err   error
}

var allDescribed sync.Map // by dialect

// IsDescribed reports whether the dialect is neither Curator's nor Kazoo's, nor
// none.
func (d Dialect) IsDescribed() bool { return d != Curator && d != Kazoo && d != Unknown && d != "" }

// Check says why a described dialect cannot be read, or nil.
func Check(d Dialect) error { return describe(d).err }

func describe(d Dialect) *described {
	if known, ok := allDescribed.Load(d); ok {
		return known.(*described)
	}
	read := &described{}
	read.Description, read.err = readDescription(string(d))
	if read.err == nil {
		read.err = read.compile()
	}
	if read.err != nil {
		read.err = fmt.Errorf("dialect %q: %w", string(d), read.err)
	}
	known, _ := allDescribed.LoadOrStore(d, read)
	return known.(*described)
}

// readDescription reads what [Description.Dialect] writes, or a name.
func readDescription(text string) (d Description, err error) {
	switch name, named := strings.CutPrefix(text, namedForm); {
	case text == string(ZooKeeper):
		return Description{Prefix: "x-{session}-"}, nil
	case text == string(Numbers):
		return Description{}, nil
	case named:
		return Description{Prefix: name + "_lock_", Others: IgnoreOthers}, nil
	}
	prefix, ok := strings.CutPrefix(text, prefixForm)
	if !ok {
		return d, fmt.Errorf("it is curator, kazoo, %s, %s, %sNAME or %sPREFIX", ZooKeeper, Numbers, namedForm, prefixForm)
	}
	prefix, d.Revoke, _ = strings.Cut(prefix, revokeForm)
	var others string
	if d.Prefix, others, ok = strings.Cut(prefix, othersForm); ok {
		d.Others, ok = othersWords[others]
		if !ok {
			return d, fmt.Errorf("%s%s: it is refuse, honour or ignore", othersForm[1:], others)
		}
	}
	return d, nil
}

// fields are what stands in braces in a prefix, and what is read for it.
var fields = regexp.MustCompile(`\{(session|session:hex|guid|label:[^{}]+)\}`)

func fieldShape(field string) string {
	switch {
	case strings.HasPrefix(field, "{session"):
		return `-?[0-9a-fA-F]+`
	case field == "{guid}":
		return `[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}`
	}
	return `.+`
}

// compile makes the shape of the names.
func (d *described) compile() error {
	shape, at := "^", 0
	for _, field := range fields.FindAllStringIndex(d.Prefix, -1) {
		text := d.Prefix[field[0]:field[1]]
		shape += regexp.QuoteMeta(d.Prefix[at:field[0]]) + fieldShape(text)
		at = field[1]
		d.guid = d.guid || text == "{guid}"
	}
	plain := fields.ReplaceAllString(d.Prefix, "")
	switch {
	case strings.ContainsAny(plain, "{}"):
		return fmt.Errorf("the prefix %q: in braces stand session, session:hex, guid or label:TEXT", d.Prefix)
	case strings.Contains(d.Prefix, "/"):
		return fmt.Errorf("the prefix %q contains /", d.Prefix)
	}
	// Ten digits, or a minus sign and what the server makes of a counter that
	// has wrapped.
	d.shape = regexp.MustCompile("(?s)" + shape + regexp.QuoteMeta(d.Prefix[at:]) + `([0-9]{10}|-[0-9]{9,10})$`)
	return nil
}

// stem returns what the name of a claim of the session begins with.
func (d *described) stem(session int64) string {
	return fields.ReplaceAllStringFunc(d.Prefix, func(field string) string {
		switch label, labelled := strings.CutPrefix(field, "{label:"); {
		case labelled:
			return label[:len(label)-1]
		case field == "{session}":
			return strconv.FormatInt(session, 10)
		case field == "{guid}":
			return GUID(Curator)
		}
		return fmt.Sprintf("%016x", uint64(session))
	})
}

// parse reads the name of a claim of the line.
func (d *described) parse(name string) (sequence int32, ok bool) {
	if found := d.shape.FindStringSubmatch(name); found != nil {
		return parseSequence(found[1])
	}
	return 0, false
}

// Likely returns the dialect that names of a directory's children look like,
// which [Parse] does not know, or "" if they do not look like one line's.
func Likely(names ...string) (likely Dialect) {
	for _, name := range names {
		d := likelyOf(name)
		if d == "" || likely != "" && d != likely {
			return ""
		}
		likely = d
	}
	return likely
}

var (
	uuidIn = regexp.MustCompile(
		`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|[0-9a-f]{32}`)
	sessionIn = regexp.MustCompile(`[0-9]{15,19}`)
	xSession  = regexp.MustCompile(`^x-(-?[0-9]+|[0-9a-f]{16})-$`)
	namedIn   = regexp.MustCompile(`^(.+)_lock_$`)
)

// likelyOf derives a dialect from a name: its UUID and its session's number,
// should it have them, are another claim's in another name.
func likelyOf(name string) Dialect {
	c, ok := ParseUnknown(name)
	if !ok {
		return ""
	}
	digits := 10
	if c.Sequence < 0 {
		digits = 11
	}
	prefix := name[:max(0, len(name)-digits)]
	switch named := namedIn.FindStringSubmatch(prefix); {
	case strings.ContainsAny(prefix, "{},"):
		return ""
	case prefix == "":
		return Numbers
	case xSession.MatchString(prefix):
		return ZooKeeper
	case named != nil:
		return Named(named[1])
	}
	prefix = uuidIn.ReplaceAllString(prefix, "{guid}")
	if at := sessionIn.FindStringIndex(prefix); at != nil {
		prefix = prefix[:at[0]] + "{session}" + prefix[at[1]:]
	}
	return Description{Prefix: prefix}.Dialect()
}
