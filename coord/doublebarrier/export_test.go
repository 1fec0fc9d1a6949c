package doublebarrier

// Small is the largest number of members of a small round.
const Small = small

// ListApart has members list the others as those of a large round do: only once
// their create has been answered, and only if it can have completed the round.
func (b *Barrier) ListApart() { b.spec.Unlisted = true }
