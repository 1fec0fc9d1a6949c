package calls

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/go-multierror"
)

// mostTold is how many failures the text of a joined error gives.
const mostTold = 8

// Joined returns what failed independently: the only error that is not nil as
// it is, and several as one [*multierror.Error] with a text of one line. A
// failure that reads like an earlier one is left out.
func Joined(errs ...error) error {
	var all multierror.Error
	seen := map[string]bool{}
	for _, err := range errs {
		if err != nil && !seen[err.Error()] {
			seen[err.Error()] = true
			all.Errors = append(all.Errors, err)
		}
	}
	if len(all.Errors) == 1 {
		return all.Errors[0]
	}
	all.ErrorFormat = text
	return all.ErrorOrNil()
}

// JoinedWithin is [Joined] for requests that a call made side by side. When ctx
// has ended, no single request is at fault, and the first failure stands for
// all of them.
func JoinedWithin(ctx context.Context, errs ...error) error {
	if ctx.Err() == nil {
		return Joined(errs...)
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func text(errs []error) string {
	var texts []string
	for _, err := range errs[:min(len(errs), mostTold)] {
		texts = append(texts, err.Error())
	}
	if more := len(errs) - mostTold; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}
