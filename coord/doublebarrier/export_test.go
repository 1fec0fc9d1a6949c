package doublebarrier

// Small is up to how many members a round is small.
const Small = small

// ListApart has members list the others as those of a large round do: only once
// their create has been answered, and only if it can have completed the number.
func (b *Barrier) ListApart() { b.spec.Unlisted = true }
