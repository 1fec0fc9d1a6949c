// Package demo has the demonstration of the lock as a verb: its options, and
// what it prints. The job itself is in package stock, its processes in package
// crew.
package demo
