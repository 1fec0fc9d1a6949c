package calls

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/hashicorp/go-multierror"
	"github.com/stretchr/testify/require"
)

func TestSeveralFailuresAreOneMultierrorOfOneLine(t *testing.T) {
	one, other := errors.New("one"), errors.New("other")
	require.NoError(t, Joined(nil, nil))
	require.Equal(t, one, Joined(nil, one, nil), "the only one as it is")
	require.Equal(t, one, Joined(one, errors.New("one")), "told once")
	err := Joined(one, nil, other)
	var all *multierror.Error
	require.ErrorAs(t, err, &all)
	require.Equal(t, []error{one, other}, all.Errors)
	require.EqualError(t, err, "one; other")
	require.ErrorIs(t, err, other)
}

func TestTheTextOfHundredsOfFailuresIsShort(t *testing.T) {
	errs := make([]error, 300)
	for i := range errs {
		errs[i] = fmt.Errorf("%d", i)
	}
	require.EqualError(t, Joined(errs...), "0; 1; 2; 3; 4; 5; 6; 7; and 292 more")
	require.ErrorIs(t, Joined(errs...), errs[299])
}

func TestTheEndOfTheContextIsNoRequestsFault(t *testing.T) {
	one, other := errors.New("one"), errors.New("other")
	ctx, cancel := context.WithCancel(t.Context())
	require.EqualError(t, JoinedWithin(ctx, nil, one, other), "one; other")
	cancel()
	require.Equal(t, one, JoinedWithin(ctx, nil, one, other))
	require.NoError(t, JoinedWithin(ctx, nil, nil))
}
