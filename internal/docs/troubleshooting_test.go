package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
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
	values   map[string]string // of variables and constants, "coord.ErrBusy"
}

// sayings reads the literals of all code that is no test.
func sayings(t *testing.T) said {
	t.Helper()
	all := said{values: map[string]string{}}
	for _, path := range files(t, "*.go") {
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
					all.values[file.Name.Name+"."+n.Names[i].Name] = told(value)
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
				said := slices.ContainsFunc(all.literals, func(text string) bool { return strings.Contains(text, strings.TrimSpace(part)) })
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
	exported := regexp.MustCompile(`^(coord|lock|rwlock|semaphore|election|barrier|doublebarrier|queue)\.Err\w+$`)
	for _, name := range slices.Sorted(maps.Keys(all.values)) {
		if exported.MatchString(name) {
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
