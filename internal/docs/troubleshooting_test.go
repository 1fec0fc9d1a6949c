package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// foreign are messages of Go's own packages, and of the system.
var foreign = []string{
	"connect: connection refused", "no such host", "i/o timeout", "EOF",
	"certificate signed by unknown authority", "tls: bad certificate", "certificate is valid for …, not …",
}

// tableRows returns the cells of the rows of all tables of a document that
// begin with this header.
func tableRows(t *testing.T, doc, header string) (rows [][]string) {
	t.Helper()
	text := read(t, root+"/docs/"+doc)
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			inside = false
		case strings.HasPrefix(line, "| "+header+" |"):
			inside = true
		case inside && !strings.HasPrefix(line, "|-"):
			rows = append(rows, strings.Split(strings.Trim(line, "| "), " | "))
		}
	}
	require.NotEmpty(t, rows, header)
	return rows
}

// said is what the source says: its constants' and errors' texts.
type said struct {
	literals []string
	exported map[string]bool   // of the packages that users import
	values   map[string]string // of variables and constants, "coord.ErrBusy"
}

// sayings reads the literals of all code that is no test, and of the client
// library's constants, which its errors are among.
func sayings(t *testing.T) said {
	t.Helper()
	all := said{values: map[string]string{}, exported: map[string]bool{}}
	library, err := exec.CommandContext(t.Context(), "go", "list", "-buildvcs=false", "-f", "{{.Dir}}",
		"github.com/"+zkLibrary).Output()
	require.NoError(t, err)
	for _, path := range append(files(t, "*.go"), filepath.Join(strings.TrimSpace(string(library)), "constants.go")) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr, *ast.BasicLit:
				if text, ok := literal(n.(ast.Expr)); ok {
					all.literals = append(all.literals, text)
					return false
				}
			case *ast.ValueSpec:
				for i, value := range n.Values {
					name := file.Name.Name + "." + n.Names[i].Name
					if isPublic := isPublic(t, path); isPublic || !all.exported[name] {
						all.values[name], all.exported[name] = told(value), isPublic && n.Names[i].IsExported()
					}
				}
			}
			return true
		})
	}
	return all
}

// literal joins the texts of an expression.
func literal(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		a, okA := literal(e.X)
		b, okB := literal(e.Y)
		return a + b, okA && okB
	}
	return "", false
}

// told is a number, the text of an error that is made, or the name of
// another.
func told(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Value
	case *ast.SelectorExpr:
		if pkg, ok := e.X.(*ast.Ident); ok {
			return "=" + pkg.Name + "." + e.Sel.Name
		}
	case *ast.CallExpr:
		if len(e.Args) > 0 {
			text, _ := literal(e.Args[0])
			return text
		}
	}
	return ""
}

// text is the text of an error.
func (s said) text(name string) string {
	value := s.values[name]
	for strings.HasPrefix(value, "=") {
		value = s.values[value[1:]]
	}
	return value
}

// fragments are the parts of a message that do not vary.
func fragments(message string) []string {
	return strings.FieldsFunc(message, func(r rune) bool { return r == '…' })
}

var inTicks = regexp.MustCompile("`([^`]+)`")

func TestTheMessagesInTheTroubleshootingAreThoseOfTheCode(t *testing.T) {
	all := sayings(t)
	for _, row := range tableRows(t, "troubleshooting.md", "message") {
		for _, message := range inTicks.FindAllStringSubmatch(row[0], -1) {
			if slices.Contains(foreign, message[1]) {
				continue
			}
			for _, part := range fragments(message[1]) {
				said := slices.ContainsFunc(all.literals,
					func(text string) bool { return strings.Contains(text, strings.TrimSpace(part)) })
				require.True(t, said, "no code says %q of %q", part, message[1])
			}
		}
	}
}

func TestTheTroubleshootingHasEveryErrorOfTheLibraryWithItsText(t *testing.T) {
	all, documented := sayings(t), map[string]string{}
	for _, row := range tableRows(t, "troubleshooting.md", "error") {
		names, texts := inTicks.FindAllStringSubmatch(row[0], -1), inTicks.FindAllStringSubmatch(row[1], -1)
		require.Len(t, texts, len(names), row)
		pkg, _, _ := strings.Cut(names[0][1], ".")
		for i, name := range names {
			documented[pkg+"."+strings.TrimPrefix(name[1], pkg+".")] = texts[i][1]
		}
	}
	isError := regexp.MustCompile(`\.Err\w+$`)
	for _, name := range slices.Sorted(maps.Keys(all.values)) {
		if all.exported[name] && isError.MatchString(name) {
			require.Equal(t, all.text(name), documented[name], name)
			delete(documented, name)
		}
	}
	require.Empty(t, documented, "there are no such errors")
}

func TestTheTroubleshootingHasEveryExitStatus(t *testing.T) {
	var told []string
	for _, row := range tableRows(t, "troubleshooting.md", "status") {
		told = append(told, row[0])
	}
	statuses := 0
	for name, value := range sayings(t).values {
		if regexp.MustCompile(`^(run\.exit|term\.Exit)[A-Z]\w*$`).MatchString(name) && value != "" {
			statuses++
			require.Contains(t, told, value, name)
		}
	}
	require.GreaterOrEqual(t, statuses, 9)
}

// isPublic reports whether a file is of a package that users import.
func isPublic(t *testing.T, file string) bool {
	t.Helper()
	if filepath.IsAbs(file) {
		return false // the client library's
	}
	folder, err := filepath.Rel(root, filepath.Dir(file))
	require.NoError(t, err)
	public := strings.HasPrefix(folder, "coord") || strings.HasPrefix(folder, "zkembed") ||
		strings.HasPrefix(folder, "contrib")
	return public && !strings.Contains(folder, "internal")
}

// declaredNames are the exported names of the library and of contrib, as
// documents write them: coord.Open, lock.NewMulti, Hold.Txn.
func declaredNames(t *testing.T) (names, owners map[string]bool) {
	t.Helper()
	names, owners = map[string]bool{}, map[string]bool{}
	add := func(owner string, declared ...*ast.Ident) {
		for _, id := range declared {
			names[owner+"."+id.Name], owners[owner] = true, true
		}
	}
	for _, path := range files(t, "*.go") {
		if !isPublic(t, path) || strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		pkg, owner := file.Name.Name, ""
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				add(receiver(n, pkg), n.Name)
				return false
			case *ast.TypeSpec:
				add(pkg, n.Name)
				owner = n.Name.Name
			case *ast.Field: // of a struct, or a method of an interface
				add(owner, n.Names...)
			case *ast.ValueSpec:
				add(pkg, n.Names...)
			}
			return true
		})
	}
	return names, owners
}

// receiver is the type that a method belongs to, or else the package.
func receiver(d *ast.FuncDecl, pkg string) string {
	if d.Recv == nil {
		return pkg
	}
	owner, _, _ := strings.Cut(types.ExprString(d.Recv.List[0].Type), "[")
	return strings.TrimPrefix(owner, "*")
}

var (
	qualified = regexp.MustCompile(`^(?:\w+\.)??([A-Za-z]\w*)\.([A-Z]\w*)`)
	fenced    = regexp.MustCompile("(?ms)^```.*?^```$")
)

// What recipes hand out has the methods of the hold that it is.
var embedding = map[string]string{
	"Item": "Held", "Member": "Held", "Membership": "Held", "Run": "Held", "Slot": "Held", "Term": "Held",
}

// Names of the library that stand in code within the text exist: a name that
// was changed is changed in the documents, too. The changelog has former ones.
func TestTheNamesInTheDocumentsAreDeclared(t *testing.T) {
	names, owners := declaredNames(t)
	checked := 0
	for path, text := range texts(t, "*.md") {
		if filepath.Base(path) == "CHANGELOG.md" {
			continue
		}
		for _, found := range inTicks.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
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
