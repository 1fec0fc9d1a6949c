package doublebarrier

import (
	"errors"
	"fmt"
)

var (
	// ErrLate: a round is under way without the caller, who came after its
	// members were complete. Call Enter again later, or see [WaitForNextRound].
	ErrLate = errors.New("a round is under way without this member")
	// ErrSize: others use the barrier with another number of members. It can be
	// changed only while no member is there.
	ErrSize = errors.New("the barrier is used with another number of members")
	// ErrIncomplete: the round is over, but not every member was seen to
	// finish; the error is an [*IncompleteError], the same for all who left.
	ErrIncomplete = errors.New("members are missing")
	// ErrBroken: a client deleted the node ready while a round was open, or
	// wrote something else into it. How the round ended is not known.
	ErrBroken = errors.New("the barrier was tampered with while it was in use")
)

// IncompleteError is the outcome of a round in which not every member was seen
// to finish. It matches [ErrIncomplete].
type IncompleteError struct {
	Round   int64
	Members int
	// Missing are the indexes ([Member.Index]) of members that crashed, lost
	// their session, gave up, or crashed after they had finished but before
	// that was seen.
	Missing []int
}

func (e *IncompleteError) Error() string {
	return fmt.Sprintf("round %d ended with %d of %d members missing: %v", e.Round, len(e.Missing), e.Members, e.Missing)
}

// Is makes the error match [ErrIncomplete].
func (e *IncompleteError) Is(target error) bool { return target == ErrIncomplete }
