package coord_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkcoord/zkcoord/coord"
	"github.com/zkcoord/zkcoord/coord/cron"
	"github.com/zkcoord/zkcoord/coord/doublebarrier"
	"github.com/zkcoord/zkcoord/coord/election"
	"github.com/zkcoord/zkcoord/coord/group"
	"github.com/zkcoord/zkcoord/coord/once"
	"github.com/zkcoord/zkcoord/coord/queue"
	"github.com/zkcoord/zkcoord/coord/slots"
)

// What recipes hand out can be asked as a hold can.
var _ = []coord.Held{
	(*cron.Slot)(nil), (*doublebarrier.Member)(nil), (*election.Term)(nil), (*group.Membership)(nil),
	(*once.Run)(nil), (*queue.Item)(nil), (*slots.Slot)(nil),
}

// ending are the methods that a hold has and a view of it has not.
func ending() map[string]bool {
	methods := map[string]bool{}
	hold, held := reflect.TypeFor[*coord.Hold](), reflect.TypeFor[coord.Held]()
	for i := range hold.NumMethod() {
		methods[hold.Method(i).Name] = true
	}
	for i := range held.NumMethod() {
		delete(methods, held.Method(i).Name)
	}
	return methods
}

// TestF68WhatARecipeOwnsCanBeAskedAndNotEnded: a method by which a hold ends or
// changes hands is one that the recipe itself declares, with what else belongs
// to that, and never the hold's own.
func TestF68WhatARecipeOwnsCanBeAskedAndNotEnded(t *testing.T) {
	ends := ending()
	for _, method := range []string{"Release", "Abandon"} {
		require.True(t, ends[method], method)
	}
	embedded, declared := map[string][]string{}, map[string][]string{} // by type, such as once.Run
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil && ends[d.Name.Name] {
					of := named(file, d.Recv.List[0].Type)
					declared[of] = append(declared[of], d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok {
						of := file.Name.Name + "." + s.Name.Name
						embedded[of] = append(embedded[of], embeds(file, s.Type)...)
					}
				}
			}
		}
		return nil
	}))
	require.Contains(t, declared["coord.Hold"], "Release")
	views := 0
	for of, within := range embedded {
		for ; len(within) > 0; within = within[1:] {
			if within[0] == "coord.Held" {
				views++
			}
			if _, name, _ := strings.Cut(of, "."); ast.IsExported(name) {
				require.Empty(t, declared[within[0]], "%s embeds %s", of, within[0])
			}
			within = append(within, embedded[within[0]]...)
		}
	}
	require.GreaterOrEqual(t, views, 7)
}

// embeds are the types that a struct embeds.
func embeds(file *ast.File, t ast.Expr) (types []string) {
	s, ok := t.(*ast.StructType)
	if !ok {
		return nil
	}
	for _, field := range s.Fields.List {
		if len(field.Names) == 0 {
			types = append(types, named(file, field.Type))
		}
	}
	return types
}

// named is a type's name, with that of its package.
func named(file *ast.File, t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return named(file, t.X)
	case *ast.IndexExpr:
		return named(file, t.X)
	case *ast.SelectorExpr:
		return t.X.(*ast.Ident).Name + "." + t.Sel.Name
	case *ast.Ident:
		return file.Name.Name + "." + t.Name
	}
	return ""
}
