// Package workload is what clients do in the simulation, in the soak and under
// the mixes of faults: workers that use each recipe again and again, give up
// early, hold for long, and put what they did and saw on record in package
// history.
//
// A [Site] is a client with the test around it, a [Worker] uses one recipe
// there by a random source of its own, and a [Pace] says how long things last.
// The same code runs in virtual time, in a testing/synctest bubble, and in real
// time.
//
// A worker immediately judges what it sees by itself: a call returns when its
// context ends, with an error that is documented; Err, Done and Deadline of a
// hold agree; a release is over in time. The rules of package history judge the
// records of all workers. A test adds its own checks by [Checks].
package workload
