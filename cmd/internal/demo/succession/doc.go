// Package succession is the election of the demonstration: replicas, of which
// one at a time leads and writes to a log, and a test of them, which kills the
// leader again and again and judges the log.
package succession
