package fence

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ErrStale says that the resource has seen a larger token: nothing was changed.
// The larger token is a newer holder's, and the caller's hold is over, unless
// the tokens are from different ensembles, or the ensemble was restored from a
// backup: such tokens cannot be compared. Errors that wrap ErrStale give both
// tokens, if the resource tells the newer one.
var ErrStale = errors.New("stale fencing token: the resource has seen a larger one")

// ErrUnfenced says that a resource accepts what it should refuse.
var ErrUnfenced = errors.New("the resource is not fenced")

// maxName is the longest name in bytes: what a MySQL table keeps.
const maxName = 255

func validName(name string) error {
	if name == "" || len(name) > maxName || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return fmt.Errorf("fence: the name %q is not UTF-8 of 1 to %d bytes without NUL", name, maxName)
	}
	return nil
}

func validToken(token int64) error {
	if token <= 0 {
		return fmt.Errorf("fence: %d is no fencing token: only an exclusive hold has one", token)
	}
	return nil
}

func valid(name string, token int64) error {
	return errors.Join(validName(name), validToken(token))
}

// accepts fails with [ErrStale] if the token is older than the newest one.
func accepts(name string, newest, token int64) error {
	if token < newest {
		return fmt.Errorf("fence %s: token %d after %d: %w", name, token, newest, ErrStale)
	}
	return nil
}

// Check shows that a resource is fenced, by four calls of write. The write with
// the token of a hold must succeed; with an older one, it must fail with
// [ErrStale]; with none (0), it must fail; and with the token it must succeed
// again. If the resource accepts a write that it should refuse, the error
// matches [ErrUnfenced]. That write is carried out, so use a name that exists
// only for the check.
func Check(ctx context.Context, token int64, write func(ctx context.Context, token int64) error) error {
	if write == nil {
		return errors.New("fence: check: the function is nil")
	}
	if token < 2 {
		return fmt.Errorf("fence: check with token %d: no older one exists; take that of a hold", token)
	}
	if err := write(ctx, token); err != nil {
		return fmt.Errorf("fence: check: the write with token %d: %w", token, err)
	}
	switch err := write(ctx, token-1); {
	case err == nil:
		return fmt.Errorf("fence: check: a write with token %d was accepted after %d: %w", token-1, token, ErrUnfenced)
	case !errors.Is(err, ErrStale):
		return fmt.Errorf("fence: check: the write with token %d after %d failed, but was not refused as stale: %w",
			token-1, token, err)
	}
	if err := write(ctx, 0); err == nil {
		return fmt.Errorf("fence: check: a write without a token was accepted: %w", ErrUnfenced)
	}
	if err := write(ctx, token); err != nil {
		return fmt.Errorf("fence: check: the write with token %d after a refusal: %w", token, err)
	}
	return nil
}
