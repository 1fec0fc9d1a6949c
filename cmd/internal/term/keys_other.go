//go:build !(linux || darwin || freebsd || openbsd)

package term

import (
	"context"
	"os"
)

// UntilQuit is for systems with other terminals, where no key ends anything.
func UntilQuit(ctx context.Context, _ *Streams) (context.Context, func()) { return ctx, func() {} }

func foreground(*os.File) bool { return true }
