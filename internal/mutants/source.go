package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sources has the text of those Go files below a folder that mutants may
// change, and knows where each function, variable and constant of a package
// stands in them.
type sources struct {
	text   map[string]string  // by path
	places map[string][]place // by name
}

type place struct {
	path     string
	from, to int
}

// readSources reads the Go files below root, tests included, that have a text
// which one of the mutants replaces.
func readSources(root string, mutants []mutant) (sources, error) {
	s := sources{text: map[string]string{}, places: map[string][]place{}}
	var texts []string
	for _, m := range mutants {
		for _, e := range m.edits {
			texts = append(texts, e.old)
		}
	}
	return s, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch hidden := strings.HasPrefix(d.Name(), ".") && path != root; {
		case err != nil:
			return err
		case d.IsDir() && (hidden || d.Name() == "testdata" || d.Name() == "artefacts"):
			return filepath.SkipDir
		case d.IsDir() || hidden || filepath.Ext(path) != ".go":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || !slices.ContainsFunc(texts, func(old string) bool { return strings.Contains(string(text), old) }) {
			return err
		}
		return s.parse(path, text)
	})
}

func (s sources) parse(path string, text []byte) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	s.text[path] = string(text)
	for _, d := range file.Decls {
		p := place{path, files.Position(d.Pos()).Offset, files.Position(d.End()).Offset}
		for _, name := range declared(d) {
			s.places[name] = append(s.places[name], p)
		}
	}
	return nil
}

// declared returns the names that a declaration makes; a method's is
// "Receiver.Name".
func declared(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return []string{d.Name.Name}
		}
		on := d.Recv.List[0].Type
		if star, ok := on.(*ast.StarExpr); ok {
			on = star.X
		}
		switch generic := on.(type) {
		case *ast.IndexExpr:
			on = generic.X
		case *ast.IndexListExpr:
			on = generic.X
		}
		return []string{on.(*ast.Ident).Name + "." + d.Name.Name}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if values, ok := spec.(*ast.ValueSpec); ok {
				for _, name := range values.Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

// find returns where the text of an edit stands. There must be one such place
// in the tree.
func (s sources) find(e edit) (at place, err error) {
	found := 0
	for _, p := range s.places[e.decl] {
		body := s.text[p.path][p.from:p.to]
		if n := strings.Count(body, e.old); n > 0 {
			found += n
			from := p.from + strings.Index(body, e.old)
			at = place{p.path, from, from + len(e.old)}
		}
	}
	if found != 1 {
		return place{}, fmt.Errorf(
			"%s is declared %d times, and has the text to replace %d times in all, not once; bring the table of mutants up to date:\n%s",
			e.decl, len(s.places[e.decl]), found, e.old)
	}
	return at, nil
}

// apply returns the files that a mutant changes, by path.
func (s sources) apply(m mutant) (map[string]string, error) {
	type change struct {
		at  place
		new string
	}
	var changes []change
	for _, e := range m.edits {
		at, err := s.find(e)
		if err != nil {
			return nil, err
		}
		changes = append(changes, change{at, e.new})
	}
	slices.SortFunc(changes,
		func(a, b change) int { return b.at.from - a.at.from }) // the last first: the others stay where they are
	changed := map[string]string{}
	for _, c := range changes {
		text, ok := changed[c.at.path]
		if !ok {
			text = s.text[c.at.path]
		}
		changed[c.at.path] = text[:c.at.from] + c.new + text[c.at.to:]
	}
	return changed, nil
}
