// Package faults holds the catalogue of fault scenarios as tests: one test for
// each of F01 to F54, named after it, on the servers the scenario needs. Each
// shows that its fault happened. docs/testing.md has the table.
package faults
