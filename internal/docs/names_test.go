package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// declaredNames are the exported names of the library and of contrib, as
// documents write them: coord.Open, lock.NewMulti, Hold.Txn.
func declaredNames(t *testing.T) (names, owners map[string]bool) {
	t.Helper()
	names, owners = map[string]bool{}, map[string]bool{}
	add := func(owner, name string) { names[owner+"."+name], owners[owner] = true, true }
	for _, path := range files(t, "*.go") {
		folder, err := filepath.Rel(root, filepath.Dir(path))
		require.NoError(t, err)
		public := strings.HasPrefix(folder, "coord") || strings.HasPrefix(folder, "zkembed") || strings.HasPrefix(folder, "contrib")
		if !public || strings.Contains(folder, "internal") || strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				add(receiver(d, file.Name.Name), d.Name.Name)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						add(file.Name.Name, s.Name.Name)
						members(s, add)
					case *ast.ValueSpec:
						for _, name := range s.Names {
							add(file.Name.Name, name.Name)
						}
					}
				}
			}
		}
	}
	return names, owners
}

// receiver is the type that a method belongs to, or else the package.
func receiver(d *ast.FuncDecl, pkg string) (owner string) {
	owner = pkg
	if d.Recv != nil {
		ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && owner == pkg {
				owner = id.Name
			}
			return true
		})
	}
	return owner
}

// members adds the fields of a struct, those of the types that it embeds left
// out, and the methods of an interface.
func members(s *ast.TypeSpec, add func(owner, name string)) {
	fields := func(list *ast.FieldList) {
		for _, field := range list.List {
			for _, name := range field.Names {
				add(s.Name.Name, name.Name)
			}
		}
	}
	switch body := s.Type.(type) {
	case *ast.StructType:
		fields(body.Fields)
	case *ast.InterfaceType:
		fields(body.Methods)
	}
}

var (
	qualified = regexp.MustCompile(`^(?:\w+\.)??([A-Za-z]\w*)\.([A-Z]\w*)`)
	fenced    = regexp.MustCompile("(?ms)^```.*?^```$")
)

// What embeds a hold has its methods.
var embedding = map[string]string{"Term": "Hold"}

// Names of the library that stand in code within the text exist: a name that
// was changed is changed in the documents, too. The changelog has former ones.
func TestTheNamesInTheDocumentsAreDeclared(t *testing.T) {
	names, owners := declaredNames(t)
	checked := 0
	for _, path := range files(t, "*.md") {
		if filepath.Base(path) == "CHANGELOG.md" {
			continue
		}
		for _, found := range inTicks.FindAllStringSubmatch(fenced.ReplaceAllString(read(t, path), ""), -1) {
			name := qualified.FindStringSubmatch(found[1])
			if name == nil || !owners[name[1]] || name[2] == strings.ToUpper(name[2]) { // those are Java's
				continue
			}
			checked++
			if !names[name[1]+"."+name[2]] && !names[embedding[name[1]]+"."+name[2]] {
				t.Errorf("%s: there is no %s.%s", path, name[1], name[2])
			}
		}
	}
	require.Greater(t, checked, 100)
}
