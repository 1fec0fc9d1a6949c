//go:build linux || darwin || freebsd || openbsd

package cli

import (
	"testing"

	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
)

func TestMain(m *testing.M) { cmdtest.Main(m, Main) }
