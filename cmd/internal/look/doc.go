// Package look finds out what stands at a path: the contenders of a line, a
// queue, a double barrier's round, a semaphore's slots, a barrier, and over
// many paths who waits for whom. It knows how the recipes lay out their nodes;
// package run knows the directories of slots as well.
package look
