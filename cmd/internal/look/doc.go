// Package look finds out which recipe is at a path and its state, and over many
// paths who waits for whom. It knows how the recipes lay out their nodes.
package look
