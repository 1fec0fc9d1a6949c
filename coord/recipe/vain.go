package recipe

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/inspect"
)

// InVain adds to err, if it says that ctx's deadline ended a wait, what the
// wait was for ([coord.WaitError]), as tell says it then: instead of what a
// wait inside of the recipe said, such as that for a place in a queue. tell has
// the time of [Grace], and is not called while the client is not connected.
// Where it fails, or is nil, err is returned without that.
func InVain(ctx context.Context, c *coord.Client, err error, tell func(ctx context.Context) (string, error)) error {
	if tell == nil || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() == nil || !c.Info().Connected {
		return err
	}
	ctx, cancel := Grace(ctx)
	defer cancel()
	what, failed := tell(ctx)
	if failed != nil || what == "" {
		return err
	}
	return &coord.WaitError{Err: outside(err), For: what}
}

// outside is the error of a wait without what it says of the inside.
func outside(err error) error {
	switch is := err.(type) {
	case *coord.OpError:
		return outside(is.Err)
	case *coord.WaitError:
		return outside(is.Err)
	}
	return err
}

// MostNamed is how many of those who are there an error names.
const MostNamed = 3

// HeldBy says who holds, as [Names] does.
func HeldBy(first []inspect.Contender, all int) string {
	if len(first) == 0 {
		return ""
	}
	return "held by " + Names(first, all)
}

// Names says who they are, of whom all are so many: the first few by what their
// nodes say, or by the nodes' paths.
func Names(first []inspect.Contender, all int) string {
	var names []string
	for _, c := range first[:min(MostNamed, len(first))] {
		name := c.Node
		if owner, _, _ := strings.Cut(c.Owner, "\n"); owner != "" && len(owner) <= longestOwner {
			name = strconv.Quote(owner)
		}
		names = append(names, name)
	}
	said := strings.Join(names, ", ")
	if more := all - len(names); more > 0 {
		return fmt.Sprintf("%s and %d more", said, more)
	}
	return said
}

// longestOwner is how many bytes of what a node says are shown.
const longestOwner = 100
