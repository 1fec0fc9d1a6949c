//go:build linux || darwin || freebsd || openbsd

package demo_test

import (
	"testing"

	"github.com/zkcoord/zkcoord/cmd/internal/cli"
	"github.com/zkcoord/zkcoord/cmd/internal/cmdtest"
)

func TestMain(m *testing.M) { cmdtest.Main(m, cli.Main) }
