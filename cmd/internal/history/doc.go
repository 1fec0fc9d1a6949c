// Package history remembers who held what, from looks that were made one after
// the other. It is told what each look has shown and when, and makes nothing
// up: what happened between two looks is known as far as both together prove
// it. It asks nobody, and has no clock.
package history
