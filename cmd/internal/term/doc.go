// Package term is what a verb reads and writes: its streams, notes and tables,
// the keys of a terminal, words such as ages and plurals, and the status that
// the program exits with. It knows nothing of coordination.
package term
