package contract

import (
	"testing"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }
