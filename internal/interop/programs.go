package interop

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/internal/zktest"
)

// Register makes the children known that the programs are. Call it in TestMain
// before zktest.Main.
func Register() { zktest.RegisterChild("exec", become) }

// become turns the child process into another program, which then dies with the
// test just as a child does.
func become(args []string) {
	env := append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	if err := syscall.Exec(args[0], args, env); err != nil {
		fmt.Fprintf(os.Stderr, "cannot run %s: %v\n", args[0], err)
		os.Exit(126)
	}
}

// Program is a command line that still lacks the program's own arguments.
type Program []string

// Start runs the program as a child that ends with the test.
func (p Program) Start(t testing.TB, args ...string) *zktest.ChildProcess {
	t.Helper()
	return zktest.Child(t, "exec", append(append([]string(nil), p...), args...)...)
}

// Python returns a script of testdata/python, or skips the test.
func Python(t testing.TB, script string) Program {
	t.Helper()
	interpreter, err := findPython()
	leaveOut(t, err)
	return Program{interpreter, filepath.Join("testdata", "python", script)}
}

// Java returns the program of a class in testdata/java, or skips the test.
func Java(t testing.TB, class string) Program {
	t.Helper()
	tools, err := findJava()
	leaveOut(t, err)
	classes, err := compile()
	require.NoError(t, err)
	return append(append(Program{tools.java}, plainJVM...), "-XX:-UsePerfData", "-Xmx128m",
		"-cp", classes+string(os.PathListSeparator)+tools.classPath, class)
}

// plainJVM is for programs that end soon.
var plainJVM = []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"}

// compile compiles testdata/java once, in the folder of this binary, which the
// go command removes.
var compile = sync.OnceValues(func() (classes string, err error) {
	tools, err := findJava()
	if err != nil {
		return "", err
	}
	sources, err := filepath.Glob("testdata/java/*.java")
	if err != nil {
		return "", err
	}
	classes = filepath.Join(filepath.Dir(os.Args[0]), "classes")
	args := []string{"-J" + plainJVM[0], "-J" + plainJVM[1], "-d", classes, "-cp", tools.classPath}
	if out, err := exec.Command(tools.javac, append(args, sources...)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("compiling testdata/java: %w\n%s", err, out)
	}
	return classes, nil
})

// leaveOut skips the test if something is missing on this machine, and fails it
// where nothing may be missing.
func leaveOut(t testing.TB, missing error) {
	t.Helper()
	if missing == nil {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("CI is set, and this is missing: %v", missing)
	}
	t.Skipf("left out: %v", missing)
}

// findPython returns the interpreter that has Kazoo: Debian's own, which may
// not be the first in PATH.
var findPython = sync.OnceValues(func() (string, error) {
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		path, err := exec.LookPath(name)
		if err == nil && exec.Command(path, "-c", "import kazoo").Run() == nil {
			return path, nil
		}
	}
	return "", errors.New(`no Python with Kazoo found; "make test" installs it, or: apt-get install python3-kazoo`)
})

type javaTools struct{ java, javac, classPath string }

// findJava returns the JDK's commands and the class path of Curator's recipes:
// their manifests name what they need.
var findJava = sync.OnceValues(func() (javaTools, error) {
	const folder = "/usr/share/java"
	var tools javaTools
	var err error
	if tools.java, err = exec.LookPath("java"); err == nil {
		tools.javac, err = exec.LookPath("javac")
	}
	if err != nil {
		return tools, fmt.Errorf(`no JDK found (%w); "make test" installs it, or: apt-get install default-jdk-headless`, err)
	}
	var jars []string
	for _, name := range []string{
		"curator-recipes.jar", "curator-framework.jar", "curator-client.jar", "zookeeper-recipes-lock.jar", "slf4j-nop.jar",
	} {
		jar := filepath.Join(folder, name)
		if _, err := os.Stat(jar); err != nil {
			return tools, fmt.Errorf(
				`no %s found; "make test" installs it, or: apt-get install libcurator-recipes-java libslf4j-java`, jar)
		}
		jars = append(jars, jar)
	}
	tools.classPath = strings.Join(jars, string(os.PathListSeparator))
	return tools, nil
})
