// Package demo has the demonstration of the lock as a verb: its options, and
// what it shows. What it does is in the packages below.
package demo
