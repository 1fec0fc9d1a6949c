// Package history remembers who held what, from one look to the next. It is
// told what each look has shown, and when. Of the time between two looks it
// says only what the two prove together. It sends no requests, and reads no
// clock.
package history
