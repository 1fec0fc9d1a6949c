package coord

import "slices"

// Order picks those out of the names of a directory's children that take part
// in the line, and sorts them by age. It costs no request.
func (l Line) Order(names []string, d Dialect) []Contender {
	line, _ := l.parse(names, d)
	return line
}

// Listed returns the names in the claim's directory as they were listed along
// with its create, or nil when that listing is not known to include it. The
// list is no older than the create, so that whoever is missing in it came
// later or is gone.
func (cl *Claim) Listed() []string {
	if !slices.Contains(cl.view, cl.name) {
		return nil
	}
	return slices.Clone(cl.view)
}
