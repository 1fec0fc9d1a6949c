//go:build linux || darwin

package docs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/internal/coordtest"
)

// longest is how long the commands of one block may take, on a busy machine.
const longest = 3 * time.Minute

// servers is how the documents call an ensemble.
const servers = "zk1:2181,zk2:2181,zk3:2181"

// A desk is a checkout with the program built, and servers to use it on.
type desk struct {
	t       *testing.T
	bin     string // where the program is
	dir     string // the working directory
	connect string // of the servers
	env     []string
	helps   map[string]string // of verbs, as far as they were asked for
}

// newDesk lays out what commands of the documents need: the checkout, by links,
// and the commands of users that they run, which do nothing.
func newDesk(t *testing.T, bin, connect string) *desk {
	t.Helper()
	d := &desk{t: t, bin: bin, dir: t.TempDir(), connect: connect, helps: map[string]string{}}
	top, err := filepath.Abs(root)
	require.NoError(t, err)
	entries, err := os.ReadDir(top)
	require.NoError(t, err)
	for _, e := range entries {
		require.NoError(t, os.Symlink(filepath.Join(top, e.Name()), filepath.Join(d.dir, e.Name())))
	}
	for _, name := range []string{"backup.sh", "work.sh", "report.sh", "migrate.sh"} {
		require.NoError(t, os.WriteFile(filepath.Join(d.dir, name), []byte("#!/bin/sh\n"), 0o700)) //nolint:gosec // a program
	}
	home, err := os.MkdirTemp("", "home")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(home) }) // the go command may still write there
	environment := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "ZK_") })
	d.env = append(environment, "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+home, "GOBIN="+home+"/bin",
		"GOFLAGS=-buildvcs=false -trimpath", "CGO_ENABLED=0") // as scripts/dist.sh has it
	values, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE", "GOPATH").Output()
	require.NoError(t, err)
	for i, value := range strings.Fields(string(values)) {
		d.env = append(d.env, []string{"GOCACHE=", "GOMODCACHE=", "GOPATH="}[i]+value)
	}
	return d
}

// untilStopped are the commands that go on until they are interrupted.
var untilStopped = regexp.MustCompile(
	`(?m)^(zkcoord (?:server|attend|exporter|top|ui)\b.*|zkcoord (?:ls|elect) .*--(?:watch|observe).*)$`)

// prelude notes the status of each command that fails, and ends commands that
// would run for ever once they have written a line.
const prelude = `
trap 'status=$?; echo "$status $BASH_COMMAND" >&3' ERR
first_line() {
	exec 5< <(echo "$BASHPID"; exec "$@")
	read -r pid <&5
	read -r line <&5
	kill "$pid"
	wait $!
	exec 5<&-
	echo "$line"
	[ -n "$line" ]
}
`

// run runs the commands of a block as people would type them, and returns their
// output, and the statuses of failed ones.
func (d *desk) run(b block) (output string, failed []string) {
	d.t.Helper()
	text := strings.ReplaceAll(b.text, servers, d.connect)
	text = untilStopped.ReplaceAllString(text, "first_line $1")
	text = strings.ReplaceAll(text, "first_line zkcoord server", "first_line zkcoord server --addr 127.0.0.1:0")
	ctx, cancel := context.WithTimeout(d.t.Context(), longest)
	defer cancel()
	statuses, err := os.Create(filepath.Join(d.t.TempDir(), "failed"))
	require.NoError(d.t, err)
	defer func() { _ = statuses.Close() }()
	var out bytes.Buffer
	shell := exec.CommandContext(ctx, "bash", "-c", prelude+text)
	env := d.env
	if !strings.Contains(text, "export ZK_SERVERS=") {
		env = append(slices.Clip(env), "ZK_SERVERS="+d.connect)
	}
	shell.Dir, shell.Env, shell.Stdout, shell.Stderr = d.dir, env, &out, &out
	shell.ExtraFiles = []*os.File{statuses} // 3
	shell.WaitDelay = 10 * time.Second
	_ = shell.Run() // the status of the last command, which is noted
	require.NoError(d.t, ctx.Err(), "%v does not end; it wrote:\n%s", b, out.String())
	noted, err := os.ReadFile(statuses.Name())
	require.NoError(d.t, err)
	for line := range strings.Lines(string(noted)) {
		failed = append(failed, strings.TrimSpace(line))
	}
	return out.String(), failed
}

// zkCli is ZooKeeper's own client, where Debian has it.
const zkCli = `#!/bin/sh
j=/usr/share/java
exec java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp $j/zookeeper-jute.jar:$j/zookeeper.jar:$j/slf4j-nop.jar:$j/commons-cli.jar org.apache.zookeeper.ZooKeeperMain "$@"
`

// Every command that the documents show is run by a test, or checked.
func TestTheCommandsInTheDocuments(t *testing.T) {
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", bin+"/zkcoord",
		"./cmd/zkcoord")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.Symlink("zkcoord", bin+"/coorddemo"))
	require.NoError(t, os.WriteFile(bin+"/zkCli.sh", []byte(zkCli), 0o700)) //nolint:gosec // a program
	d := newDesk(t, bin, "127.0.0.1:1")
	t.Run("valid where they cannot be run", d.checkBlocks)
	t.Run("reference", d.compareReference)
	t.Run("within the text", d.checkText)
	t.Run("F95 whatever stands in an item or a key is delivered or refused", d.checkHostile)
	t.Run("run", func(t *testing.T) { runBlocks(t, bin) })
	t.Run("run-books", func(t *testing.T) { runBooks(t, bin) })
}

// runBlocks runs all but the run-books, on servers with nothing but an item in
// the queue /jobs.
func runBlocks(t *testing.T, bin string) {
	var demos sync.Mutex
	for _, b := range blocksOfKind(t, "sh") {
		if runbooks[b.heading] != nil {
			continue
		}
		t.Run(b.String(), func(t *testing.T) {
			t.Parallel()
			srv := coordtest.Embedded(t)
			d := newDesk(t, bin, srv.ConnectString())
			for _, chroot := range []string{"", "/app"} {
				putAnItem(t, srv.ConnectString()+chroot)
			}
			if strings.Contains(b.text, " demo ") { // many processes, with a limit of their own
				demos.Lock()
				defer demos.Unlock()
			}
			output, failed := d.run(b)
			require.Empty(t, failed, "%v wrote:\n%s", b, output)
		})
	}
}

func putAnItem(t *testing.T, connect string) {
	t.Helper()
	c := coordtest.Open(t, connect)
	q, err := queue.New(c, "/jobs")
	require.NoError(t, err)
	require.NoError(t, q.Put(t.Context(), []byte("item")))
	require.NoError(t, c.Close(context.Background()))
}

var (
	fileName   = regexp.MustCompile(`[\w./@-]+\.(yaml|yml|service|timer)\b`)
	assignment = regexp.MustCompile(`^[A-Z_]+=`) // for one command
)

// namesFiles finds the files that a line names: they are in the checkout, and
// have tests of their own, or a block begins with their name.
func namesFiles(d *desk, line string) error {
	for _, name := range fileName.FindAllString(line, -1) {
		name = regexp.MustCompile(`@\w+\.`).ReplaceAllString(name, "@.") // of an instance
		shown := slices.ContainsFunc(blocks(d.t), func(b block) bool {
			first, _, _ := strings.Cut(b.text, "\n")
			return (b.kind == "yaml" || b.kind == "ini") && strings.HasPrefix(first, "# ") && strings.Contains(first, name)
		})
		if found, _ := filepath.Glob(filepath.Join(d.dir, "packaging", name)); shown || len(found) > 0 {
			continue
		}
		if _, err := os.Stat(filepath.Join(d.dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// check checks a command that is not for here by what it begins with.
func (d *desk) check(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	if word == "sudo" || assignment.MatchString(word) {
		return d.check(rest)
	}
	switch word {
	case "zkcoord":
		return d.understood(line)
	case "make": // that make knows the target
		if _, failed := d.run(block{text: "make -n " + rest}); len(failed) > 0 {
			return fmt.Errorf("%q", failed)
		}
		return nil
	case "go": // that the package is there; another test finds what -run names
		if rest, ok := strings.CutPrefix(line, "go run ./cmd/coorddemo "); ok {
			return d.understood("zkcoord " + rest)
		}
		_, err := os.Stat(filepath.Join(d.dir, regexp.MustCompile(`\./[\w/]+`).FindString(rest)))
		return err
	case "kubectl", "systemctl", "promtool", "install":
		return namesFiles(d, line)
	}
	return fmt.Errorf("nothing checks the command %s", word)
}

// checkBlocks checks commands that cannot be run here.
func (d *desk) checkBlocks(t *testing.T) {
	for _, b := range blocksOfKind(t, "sh elsewhere") {
		_, failed := d.run(block{text: "bash -n <<'END'\n" + b.text + "END\n"})
		require.Empty(t, failed, "%v is no shell script", b)
		for line := range strings.Lines(b.text) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				require.NoError(t, d.check(line), "%v: %s", b, line)
			}
		}
	}
}

var (
	verbWord = regexp.MustCompile(`^[a-z]+$`)
	flagWord = regexp.MustCompile(`(?:^|[\s\[|])(--[a-z][a-z-]*)`)
)

// help returns the help of the verb that a command line begins with.
func (d *desk) help(line string) (verb, text string, err error) {
	words := strings.Fields(line)[1:]
	var verbs []string
	for _, w := range words {
		if !verbWord.MatchString(w) {
			break
		}
		verbs = append(verbs, w)
	}
	for ; ; verbs = verbs[:len(verbs)-1] { // a word may be an argument
		verb = strings.Join(verbs, " ")
		if d.helps[verb] == "" {
			out, _ := exec.CommandContext(d.t.Context(), d.bin+"/zkcoord", append(verbs, "--help")...).Output()
			d.helps[verb] = string(out)
		}
		text = d.helps[verb]
		if strings.HasPrefix(text, "Usage:") {
			return verb, text, nil
		} else if len(verbs) == 0 {
			return "", "", errors.New("no such verb")
		}
	}
}

// understood says whether the program has the verb and the flags of a line, up
// to the user's own command.
func (d *desk) understood(line string) error {
	line, _, _ = strings.Cut(line, " -- ")
	verb, text, err := d.help(line)
	if err != nil {
		return err
	}
	rest := strings.TrimSpace(strings.TrimPrefix(line, "zkcoord "+verb))
	usage, _, _ := strings.Cut(text, "\n")
	if strings.Contains(usage, "<command>") && verbWord.MatchString(strings.SplitN(rest, " ", 2)[0]) {
		return fmt.Errorf("%s has no verb %s", verb, rest)
	}
	for _, flag := range flagWord.FindAllStringSubmatch(line, -1) {
		if !regexp.MustCompile(regexp.QuoteMeta(flag[1]) + `\b`).MatchString(text) {
			return fmt.Errorf("the help does not know %s", flag[1])
		}
	}
	return nil
}

// compareReference compares the reference with what the program's parser knows.
func (d *desk) compareReference(t *testing.T) {
	const name = root + "/docs/command.md"
	written, err := exec.CommandContext(t.Context(), d.bin+"/zkcoord", "__reference").Output()
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(name, written, 0o644)) //nolint:gosec // as the others
	}
	require.Equal(t, string(written), read(t, name),
		"go test ./internal/docs -run TheCommandsInTheDocuments/reference -update")
}

var inline = regexp.MustCompile("`((?:make|zkcoord|coorddemo) [^`]*|go run [.]/[^`]*)`")

// checkText checks commands within the text like commands for elsewhere. The
// changelog names former ones, too.
func (d *desk) checkText(t *testing.T) {
	checked := 0
	for path, text := range texts(t, "*.md") {
		if filepath.Base(path) == "CHANGELOG.md" {
			continue
		}
		for _, found := range inline.FindAllStringSubmatch(text, -1) {
			line := strings.Replace(found[1], "coorddemo", "zkcoord", 1)
			checked++
			if strings.HasPrefix(line, "zkcoord -") || strings.Contains(line, "VERB") {
				continue // of no verb
			}
			require.NoError(t, d.check(line), "%s: %s", path, line)
			if strings.HasPrefix(line, "zkcoord ") {
				verb, _, err := d.help(line)
				require.NoError(t, err)
				require.NotEmpty(t, verb, "%s: %s", path, line)
			}
		}
	}
	require.Greater(t, checked, 50)
}
