//go:build !(linux || darwin || freebsd || openbsd)

package cli

import "context"

// untilQuit is for systems with other terminals, where no key ends anything.
func untilQuit(ctx context.Context, _ *streams) (context.Context, func()) { return ctx, func() {} }
