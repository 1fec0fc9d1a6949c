package docs

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// recipes are the packages of the table, in the order of the guide.
var recipes = []string{
	"lock", "rwlock", "semaphore", "election", "barrier", "doublebarrier", "queue", "once", "cron", "slots", "shards",
	"group", "value", "counter",
}

// TestTheTableOfTheRecipesShowsTheirAPI: docs/design.md has a line for each
// recipe, with what makes one, its options, and the calls that ask the servers.
func TestTheTableOfTheRecipesShowsTheirAPI(t *testing.T) {
	const begin, end = "| recipe | made by | options | calls |\n", "\n\n"
	table := strings.Builder{}
	table.WriteString(begin + "|---|---|---|---|")
	for _, name := range recipes {
		p := packageDoc(t, "coord/"+name)
		var made, options, calls []string
		for _, of := range p.Types {
			isOption := strings.HasSuffix(of.Name, "Option")
			for _, f := range of.Funcs {
				if isOption {
					options = append(options, f.Name)
				} else if strings.HasPrefix(f.Name, "New") {
					made = append(made, f.Name)
				}
			}
			var asks []string
			for _, method := range of.Methods {
				if takesContext(method.Decl) || method.Name == "Abandon" {
					asks = append(asks, method.Name)
				}
			}
			if len(asks) > 0 {
				calls = append(calls, of.Name+": "+strings.Join(asks, ", "))
			}
		}
		for _, f := range p.Funcs { // of a type that is no package's own
			if strings.HasPrefix(f.Name, "New") {
				made = append(made, f.Name)
			}
		}
		fmt.Fprintf(&table, "\n| `%s` | %s | %s | %s |", name, strings.Join(made, ", "), strings.Join(options, ", "),
			strings.Join(calls, "; "))
	}
	const page = "../../docs/design.md"
	text := read(t, page)
	from := strings.Index(text, begin)
	require.Positive(t, from)
	to := from + strings.Index(text[from:], end)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(text[:from]+table.String()+text[to:]), 0o644))
		return
	}
	require.Equal(t, table.String(), text[from:to], "go test ./internal/docs -run TableOfTheRecipes -update writes it")
}

// packageDoc reads a package's documentation, without its tests.
func packageDoc(t *testing.T, dir string) *doc.Package {
	t.Helper()
	set := token.NewFileSet()
	var parsed []*ast.File
	paths, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	require.NoError(t, err)
	for _, path := range slices.DeleteFunc(paths, func(path string) bool { return strings.HasSuffix(path, "_test.go") }) {
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		require.NoError(t, err)
		parsed = append(parsed, file)
	}
	p, err := doc.NewFromFiles(set, parsed, module+dir)
	require.NoError(t, err)
	return p
}

// takesContext reports whether a function's first parameter is a context.
func takesContext(f *ast.FuncDecl) bool {
	if len(f.Type.Params.List) == 0 {
		return false
	}
	of, ok := f.Type.Params.List[0].Type.(*ast.SelectorExpr)
	return ok && of.Sel.Name == "Context"
}
