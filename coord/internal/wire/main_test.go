package wire_test

import (
	"github.com/zkcoord/zkcoord/coord/internal/wire"
	"github.com/zkcoord/zkcoord/internal/coordtest"
)

func init() { wire.InVirtualTime = coordtest.Virtual }
