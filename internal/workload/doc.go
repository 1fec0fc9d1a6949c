// Package workload is what clients do in the simulation, in the soak and under
// the mixes of faults: workers that use each recipe again and again, give up
// early, hold for long, and put what they did and saw on record in package
// history.
//
// A [Site] is a client with the test around it, a [Worker] uses one recipe there
// by a random source of its own, and a [Pace] says how long things last. The
// same code runs in virtual time, in a testing/synctest bubble, and in real time.
//
// A worker judges what it sees at once: a call returns when its context ends,
// with an error that is documented; a hold that can be trusted is not told
// otherwise; a release is over in time. What only all workers together show is
// for the rules of package history. A test adds what it can look at by [Checks].
package workload
