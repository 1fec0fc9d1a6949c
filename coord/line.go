package coord

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/zkcoord/zkcoord/coord/internal/dialect"
	"github.com/zkcoord/zkcoord/coord/internal/session"
)

// sequenceLimit is where claims are refused: before the counter sticks at
// 2147483647, where every new node gets the same number.
const sequenceLimit = math.MaxInt32 - (1 << 16) + 1

// Rule decides, by the contenders ahead of a claim in its line, the oldest
// first, whether its turn has come, and if not, which of them to wait for: when
// one of those goes, the rule is asked again. It must not change the slice,
// which many share.
//
// A rule cannot see contenders that came after the claim. No contender can
// appear ahead of a claim later, so a rule may be shown some that have gone,
// but before a grant none is missing. A rule must be monotone: adding a
// contender never turns no into yes. When a claim joins behind many of its own
// session, the rule is first asked about the nearest of these alone, and if it
// says no, the claim waits for the contenders that the rule names. So no rule
// can let later contenders go first: asked about listings of different age, it
// could grant twice.
//
// Each contender that is named without need costs a request, and can save one
// later: when a watched contender goes, and the claim's place is among the
// first 16, the rule is first asked again without it. If it still says no, it
// is asked about the newest listing that waiters of the same client have made.
// The line is listed anew only if the rule says no to that as well, and names a
// contender that is not watched yet.
type Rule func(ahead []Contender) (wait []int, granted bool)

// First is the rule of mutual exclusion: the first in line holds. Every other
// claim waits for the one before it. It also watches the one before that, and
// looks when that one goes. When its turn comes, it thus knows without a
// listing that no other is left. First is for lines in which no contender can
// appear ahead of another, except the reader that a downgraded writer leaves in
// its place: when a writer has gone, the line is listed in any case.
func First(ahead []Contender) (wait []int, granted bool) {
	switch n := len(ahead); n {
	case 0:
		return nil, true
	case 1:
		return []int{0}, false
	default:
		return []int{n - 1, n - 2}, false
	}
}

// Line is a directory in which claims queue by the order of their creation.
type Line struct {
	Dir string
	// Dialect of the claims, or "" for the client's. In a line of a described
	// dialect ([Description]) all claims are of one kind, and exclusive.
	Dialect Dialect
	// Kinds of claims that take part, or none if every kind does. A claim's own
	// kind takes part in any case. A contender of another kind cannot be
	// honoured, nor can one of the other dialect or of an unknown recipe
	// ([Unknown]), unless AnyDialect is set. If the listing of its join shows
	// such a contender before a claim, the claim is refused ([ErrForeign]). If
	// the contender is found only later, because that listing was not made or
	// was lost, or because the call has waited before (recipe.Patient), the
	// claim waits until it is gone. Other names are ignored.
	Kinds []string
	// AnyDialect: contenders of both dialects take part, and none of another
	// kind, or of an unknown recipe, matters. It is for claims that do not
	// exclude each other.
	AnyDialect bool
}

// layout is how the claims are named, by default in the client's dialect.
func (l Line) layout(d Dialect) dialect.Layout {
	return dialect.Layout{Dialect: cmp.Or(l.Dialect, d), Kinds: l.Kinds, Any: l.AnyDialect}
}

// has reports whether claims of a kind take part.
func (l Line) has(kind string) bool { return l.layout("").Has(kind) }

// Order picks from the names of a directory's children the contenders that take
// part in the line, and sorts them by age. It costs no request.
func (l Line) Order(names []string, d Dialect) []Contender {
	line, _ := l.parse(names, d)
	return line
}

// Foreign picks from the names of a directory's children the contenders that
// cannot be honoured, and sorts them by age. It costs no request.
func (l Line) Foreign(names []string, d Dialect) []Contender {
	_, foreign := l.parse(names, d)
	return foreign
}

// mayReturn reports whether a contender that is gone may stand in the line
// under another name; see [dialect.Replaceable].
func (l Line) mayReturn(gone Contender) bool {
	return dialect.Replaceable(gone.Dialect, gone.Kind, l.has(dialect.Read))
}

// parse sorts the children of a directory into contenders that take part and
// contenders that cannot be honoured.
func (l Line) parse(names []string, d Dialect) (line, foreign []Contender) {
	line = make([]Contender, 0, len(names))
	layout := l.layout(d)
	for _, name := range dialect.InOrder(names) {
		switch c, role := layout.Read(name); role {
		case dialect.TakesPart:
			line = append(line, Contender(c))
		case dialect.Foreign:
			foreign = append(foreign, Contender(c))
		}
	}
	slices.SortFunc(line, byAge)
	slices.SortFunc(foreign, byAge)
	return line, foreign
}

// lineView is a listing as a line sees it.
type lineView struct {
	line, foreign []Contender

	mu   sync.Mutex
	gone int // how many at the front of the line are known to be gone
}

// drop notes that the first in line are gone, as far as gone says so, and
// returns the rest.
func (v *lineView) drop(gone func(Contender) bool) []Contender {
	v.mu.Lock()
	defer v.mu.Unlock()
	for v.gone < len(v.line) && gone(v.line[v.gone]) {
		v.gone++
	}
	return v.line[v.gone:]
}

// longListing is the number of names above which a listing's text is too long
// to be kept for a few of them.
const longListing = 1000

// view is parse for a listing that many share: it is parsed once.
func (l Line) view(names *session.Listing, d Dialect) *lineView {
	if l.AnyDialect {
		d = "" // makes no difference
	}
	return names.View(string(cmp.Or(l.Dialect, d))+" "+strings.Join(l.Kinds, " "), func(names []string) any {
		line, foreign := l.parse(names, d)
		if len(names) > longListing {
			l.detach(line[:min(frontPlaces, len(line))], d)
		}
		return &lineView{line: line, foreign: foreign}
	}).(*lineView)
}

// detach gives contenders strings of their own: waiters that remember them do
// not keep the names of the whole listing, which are one string.
func (l Line) detach(front []Contender, d Dialect) {
	layout := l.layout(d)
	for i, c := range front {
		own, _ := layout.Read(strings.Clone(c.Name))
		front[i] = Contender(own)
	}
}

// byAge orders by sequence number. Two nodes share one after a downgrade: the
// read node took the write node's, and stands behind it.
func byAge(a, b Contender) int {
	if a.Sequence != b.Sequence {
		return cmp.Compare(a.Sequence, b.Sequence)
	}
	return cmp.Or(
		-cmp.Compare(a.Kind, b.Kind), // write before read
		cmp.Compare(a.Name, b.Name))
}

// admit refuses a claim that cannot be ordered against the others.
func admit(self Contender) error {
	if self.Sequence < 0 || self.Sequence >= sequenceLimit {
		return fmt.Errorf("%w: %s", ErrSequenceExhausted, self.Name)
	}
	return nil
}

// around splits foreign contenders, sorted by age, into those before self and
// those after it.
func around(self Contender, foreign []Contender) (before, after []Contender) {
	at, _ := slices.BinarySearchFunc(foreign, self,
		func(f, self Contender) int { return cmp.Compare(f.Sequence, self.Sequence) })
	return foreign[:at], foreign[at:]
}

// refuse returns why a claim behind f is refused.
func refuse(f Contender) error {
	whose := fmt.Sprintf("%s %s", f.Dialect, f.Kind)
	if likely := dialect.Likely(f.Name); f.Dialect == Unknown && likely != "" {
		whose = fmt.Sprintf("its name ends in a sequence number; a mutex or an election of the dialect %q shares its line",
			string(likely))
	} else if f.Dialect == Unknown {
		whose = "its name ends in a sequence number, and is no recipe's that is known"
	}
	return fmt.Errorf("%w: %s (%s) came first", ErrForeign, f.Name, whose)
}
