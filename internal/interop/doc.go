// Package interop holds the tests that other ZooKeeper clients take part in:
// Kazoo (Python) and Curator (Java), as Debian packages them.
//
// Their recipes run against the embedded server and a real one
// (recipes_test.go): what the real server makes of them is what the embedded
// server has to make of them too. And they contend with this module's locks for
// one path (exclusion_test.go), and so do locks written by hand
// (handmade_test.go, unsafe_test.go).
//
// The programs are in testdata. The recipes print one line per check; the
// contenders are driven by lines. They can be run by hand:
//
//	python3 testdata/python/recipes.py 127.0.0.1:2181 /some/path
//
// Where Python, Java or a package is missing, the tests that need it are
// skipped; with the variable CI set they fail. Package bench starts its own
// programs in these languages with the same functions (programs.go).
package interop
