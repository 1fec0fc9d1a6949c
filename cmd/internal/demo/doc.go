// Package demo has the demonstrations as verbs: the options of each, and what
// it shows. What they do is in the packages below.
package demo
