//go:build !(linux || darwin || freebsd || openbsd)

package run

import (
	"github.com/zkcoord/zkcoord/cmd/internal/conn"
	"github.com/zkcoord/zkcoord/cmd/internal/term"
)

func (v *ShardsVerb) member(s *term.Streams, c *conn.Connection) error {
	return (&job{}).run(s, c)
}
