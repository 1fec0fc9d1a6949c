package interop

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

func TestMain(m *testing.M) {
	Register()
	zktest.RegisterChild("hold", hold)
	// Programs spend most of their time waiting for one another, so more tests
	// run at once than there are processors, unless the command line says
	// otherwise.
	if err := flag.Lookup("test.parallel").Value.Set("8"); err != nil {
		panic(err)
	}
	zktest.Main(m)
}

// python returns a program of testdata/python.
func python(t *testing.T, script string) Program {
	t.Helper()
	return Python(t, filepath.Join("testdata", "python", script))
}

// java returns a program of testdata/java.
func java(t *testing.T, class string) Program {
	t.Helper()
	return Java(t, filepath.Join("testdata", "java"), class)
}
