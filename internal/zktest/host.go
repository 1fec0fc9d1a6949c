package zktest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// host is what all tests of this binary share: the folder of the servers' data,
// the shared servers.
var host hostState

type hostState struct {
	mu       sync.Mutex
	dir      string
	sweeper  *exec.Cmd
	sweepEnd func() // closes the pipe the sweeper reads

	server shared[*Server]
	ens    shared[*Ens]
}

// forks goes to the one thread that starts processes, and lives until it is
// closed.
var forks = sync.OnceValue(func() chan<- func() {
	requests := make(chan func())
	go func() {
		lockThread()
		for f := range requests {
			f()
		}
	}()
	return requests
})

// spawn runs fork on the thread for it.
func spawn(fork func() error) error {
	result := make(chan error, 1)
	forks() <- func() { result <- fork() }
	return <-result
}

// minFree is how much a memory file system must have left before data of
// servers go there; a container's default of 64 MiB is too little.
const minFree = 1 << 30

// dataDir is a new folder for one server, in memory where there is room.
func (h *hostState) dataDir(name string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dir == "" {
		if err := h.makeBase(); err != nil {
			return "", err
		}
	}
	return os.MkdirTemp(h.dir, name+"-")
}

func (h *hostState) makeBase() error {
	parent := os.TempDir()
	if freeBytes("/dev/shm") >= minFree {
		parent = "/dev/shm"
	}
	dir, err := os.MkdirTemp(parent, fmt.Sprintf("zktest-%d-", os.Getpid()))
	if err != nil {
		return fmt.Errorf("zktest: folder for the servers' data: %w", err)
	}
	// A test binary that is killed, or that panics, removes nothing. So a small
	// process waits for the end of our end of a pipe, however that comes, and
	// removes the folder; twice, since a server may be dying at the same
	// moment.
	sweeper := exec.Command("/bin/sh", "-c", `cat >/dev/null; rm -rf "$1" || { sleep 1; rm -rf "$1"; }`,
		"zktest-sweeper", dir)
	detach(sweeper)
	pipe, err := sweeper.StdinPipe()
	if err == nil {
		err = sweeper.Start()
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return fmt.Errorf("zktest: starting the process that removes %s: %w", dir, err)
	}
	h.dir, h.sweeper, h.sweepEnd = dir, sweeper, func() { _ = pipe.Close() }
	return nil
}

// close stops the shared servers and removes what was made. When keepLogs is
// set, the logs go to the artefacts first.
func (h *hostState) close(keepLogs bool) {
	label := "shared-" + filepath.Base(os.Args[0]) // the binary is named after the package
	if s := h.server.servers; s != nil {
		s.close(keepLogs, label)
	}
	if e := h.ens.servers; e != nil {
		e.close(keepLogs, label)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sweeper != nil {
		h.sweepEnd()
		_ = h.sweeper.Wait()
		_ = os.RemoveAll(h.dir)
	}
	close(forks())
}

// ArtefactDir returns the folder in which files of a failed test are kept:
// ZKTEST_ARTEFACTS, or the folder "artefacts" at the root of the repository.
func ArtefactDir() string {
	if dir := os.Getenv("ZKTEST_ARTEFACTS"); dir != "" {
		return dir
	}
	wd, err := os.Getwd()
	if err != nil {
		return filepath.Join(os.TempDir(), "zktest-artefacts")
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return filepath.Join(dir, "artefacts")
		}
		if dir == filepath.Dir(dir) {
			return filepath.Join(wd, "artefacts")
		}
	}
}

// keep copies a file to the artefacts and returns its new place.
func keep(src, name string) (string, error) {
	data, err := os.ReadFile(src)
	if err != nil {
		return "", err
	}
	dst := filepath.Join(ArtefactDir(), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
		return "", err
	}
	return dst, os.WriteFile(dst, data, 0o644)
}

// EnvZooKeeper names a folder with the zookeeper.jar and zookeeper-jute.jar of
// another version than the installed one, for all real servers. make zookeeper
// fetches one.
const EnvZooKeeper = "ZKTEST_ZOOKEEPER"

// javaFolder is where Debian keeps Java libraries.
const javaFolder = "/usr/share/java"

// findReal returns the java command and the class path of a real server, or an
// error that says what is missing and how to get it.
func findReal() (java, classPath string, err error) {
	if !canRunReal {
		return "", "", errors.New("real servers need Linux")
	}
	java, err = exec.LookPath("java")
	if err != nil {
		return "", "", errors.New(
			"no java command found; \"make test\" installs it, or: apt-get install default-jdk-headless")
	}
	classPath, err = findJars(cmp.Or(os.Getenv(EnvZooKeeper), javaFolder))
	return java, classPath, err
}

// findJars returns the class path with the ZooKeeper of a folder. zookeeper.jar
// names the jars it needs in its manifest, by Debian's paths; the logger's back
// end and a part of what TLS and the admin server take are missing there, and
// the classes of the protocol must be of the same version, so they come first.
func findJars(folder string) (classPath string, err error) {
	if !filepath.IsAbs(folder) {
		return "", fmt.Errorf("%s=%q: want an absolute path, since tests run in folders of their own", EnvZooKeeper, folder)
	}
	jars := []string{
		filepath.Join(folder, "zookeeper-jute.jar"),
		filepath.Join(folder, "zookeeper.jar"),
		filepath.Join(javaFolder, "slf4j-simple.jar"),
		filepath.Join(javaFolder, "netty-codec.jar"),
		filepath.Join(javaFolder, "servlet-api.jar"),
	}
	for _, jar := range jars {
		if _, err := os.Stat(jar); err == nil {
			continue
		}
		if filepath.Dir(jar) != javaFolder {
			return "", fmt.Errorf("no %s found; %s is to name a folder that has it, such as \"make zookeeper\" makes", jar,
				EnvZooKeeper)
		}
		return "", fmt.Errorf(
			"no %s found; \"make test\" installs it, or: apt-get install libzookeeper-java libslf4j-java", jar)
	}
	return strings.Join(jars, string(os.PathListSeparator)), nil
}
