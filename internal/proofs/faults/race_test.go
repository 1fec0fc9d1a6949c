//go:build race

package faults

// raced: the race detector makes everything several times slower.
const raced = true
