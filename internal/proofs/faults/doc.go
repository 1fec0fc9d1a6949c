// Package faults holds the catalogue of fault scenarios as tests, each named
// after its row (F01 to F63), on the servers the scenario needs. Each shows
// that its fault happened. Scenarios of one package alone stand beside its
// code. docs/testing.md has the table.
package faults
