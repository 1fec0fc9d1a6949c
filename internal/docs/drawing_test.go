package docs

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	module    = "github.com/zkcoord/zkcoord/"
	zkLibrary = "go-zookeeper/zk"
)

var update = flag.Bool("update", false, "draw the packages anew in docs/design.md")

// imports returns, for each package of the library, the command and the proofs,
// which others it imports in code that is no test, on Linux, and whether it
// imports the client library.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-buildvcs=false", "-f", `{{.ImportPath}} {{join .Imports " "}}`,
		"./...", "./cmd/...", "./internal/proofs/...")
	list.Dir = root
	list.Env = append(os.Environ(), "GOOS=linux")
	text, err := list.Output()
	require.NoError(t, err)
	all := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		from := strings.TrimPrefix(fields[0], module)
		all[from] = nil
		for _, to := range fields[1:] {
			own, ok := strings.CutPrefix(to, module)
			if ok || strings.HasSuffix(to, zkLibrary) {
				all[from] = append(all[from], strings.TrimPrefix(own, "github.com/"))
			}
		}
		slices.Sort(all[from])
	}
	require.Contains(t, all, "coord")
	return all
}

// A room is a set of packages that may import the same ones.
type room string

const (
	command   room = "command"
	proof     room = "proof"
	recipe    room = "recipe"
	primitive room = "primitive"
	client    room = "client"
	server    room = "server"
	library   room = "library"
)

// mayImport says where each room's data may flow, rooms from top to bottom.
var mayImport = map[room][]room{
	command:   {command, recipe, primitive, server},
	proof:     {proof, recipe, primitive, server, library},
	recipe:    {primitive},
	primitive: {primitive, client},
	client:    {client, library},
	server:    {},
}

func roomOf(pkg string) room {
	begins := func(folder string) bool { return strings.HasPrefix(pkg+"/", folder) }
	switch {
	case pkg == zkLibrary:
		return library
	case pkg == "coord", pkg == "coord/inspect":
		return primitive
	case begins("coord/internal/"):
		return client
	case begins("coord/"):
		return recipe
	case begins("cmd/internal/cmdtest/"):
		return proof
	case begins("cmd/"):
		return command
	case begins("zkembed/"):
		return server
	default:
		return proof
	}
}

func TestDataFlowsOneWay(t *testing.T) {
	for from, direct := range imports(t) {
		for _, to := range direct {
			if !slices.Contains(mayImport[roomOf(from)], roomOf(to)) {
				t.Errorf("%s, a %s, imports %s, a %s", from, roomOf(from), to, roomOf(to))
			}
		}
	}
}

// drawing draws the arrows: a line for each importer, above what it imports.
// What concerns all recipes is drawn once, to and from a box around them.
func drawing(all map[string][]string) string {
	const box = "recipes"
	var inside []string
	for pkg := range all {
		if roomOf(pkg) == recipe {
			inside = append(inside, pkg)
		}
	}
	slices.Sort(inside)
	shared := slices.Clone(all[inside[0]])
	for _, pkg := range inside {
		shared = slices.DeleteFunc(shared, func(to string) bool { return !slices.Contains(all[pkg], to) })
	}
	arrows := map[string][]string{box: shared}
	for from, direct := range all {
		in := func(set []string) func(string) bool {
			return func(to string) bool { return slices.Contains(set, to) }
		}
		if rest := slices.DeleteFunc(slices.Clone(direct), in(inside)); len(direct)-len(rest) == len(inside) {
			direct = append(rest, box)
		}
		if in(inside)(from) {
			direct = slices.DeleteFunc(slices.Clone(direct), in(shared))
		}
		if len(direct) > 0 {
			arrows[from] = direct
		}
	}
	var height func(pkg string) int
	height = func(pkg string) int {
		highest := 0
		for _, to := range arrows[pkg] {
			highest = max(highest, 1+height(to))
		}
		return highest
	}
	var b strings.Builder
	fmt.Fprintf(&b, "flowchart TD\n  subgraph %s\n    %s\n  end\n", box, strings.Join(inside, " & "))
	for _, from := range slices.SortedFunc(maps.Keys(arrows), func(a, b string) int {
		return cmp.Or(cmp.Compare(height(b), height(a)), cmp.Compare(a, b))
	}) {
		fmt.Fprintf(&b, "  %s --> %s\n", from, strings.Join(arrows[from], " & "))
	}
	return b.String()
}

var drawn = regexp.MustCompile("(?ms)^```mermaid\n(.*?)^```$")

func TestTheDrawingOfThePackagesShowsTheirImports(t *testing.T) {
	const name = root + "/docs/design.md"
	text := read(t, name)
	at := drawn.FindStringSubmatchIndex(text)
	require.NotNil(t, at, "docs/design.md has no drawing")
	is, want := string(text[at[2]:at[3]]), drawing(imports(t))
	if is == want {
		return
	}
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(string(text[:at[2]])+want+string(text[at[3]:])), 0o600))
		return
	}
	lines := func(s string) []string { return strings.Split(strings.TrimSpace(s), "\n") }
	for _, line := range lines(is) {
		if !slices.Contains(lines(want), line) {
			t.Errorf("drawn, and not so:  %s", line)
		}
	}
	for _, line := range lines(want) {
		if !slices.Contains(lines(is), line) {
			t.Errorf("not drawn:          %s", line)
		}
	}
	t.Errorf("The drawing in docs/design.md should be (go test ./internal/docs -run Drawing -update writes it):\n%s", want)
}
