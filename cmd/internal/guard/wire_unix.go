//go:build linux || darwin || freebsd || openbsd

package guard

import "syscall"

// The owner speaks to the guard, and the guard to the owner, in JSON values,
// one after the other, each over its own pipe. The pipes are the descriptors
// that follow the three standard ones. The third is a socket, which carries
// files to keep open: its end means to the reaper that everything has to end,
// and, unless the owner has said before that it lives, that the owner is gone.
const (
	ordersFD  = 3
	reportsFD = 4
	lifeFD    = 5
)

// What the third carries: files, and what they are for, and one word without a
// file.
const (
	toKeep     = 'k' // open
	toFarewell = 'f' // to be the input of the farewell; how long that makes sense follows, in 8 bytes of nanoseconds
	living     = 'l' // the owner lives, and needs no farewell: it knows of the command's end, or wants it
)

// order is a message of the owner to the guard. The first one starts the
// command; in later ones, each field that is set is an instruction.
type order struct {
	Setup    *setup         `json:"setup,omitempty"`
	Deadline Instant        `json:"deadline,omitempty"` // the lock can be trusted until then
	Signal   syscall.Signal `json:"signal,omitempty"`   // pass this on
	Stop     bool           `json:"stop,omitempty"`     // TERM now, KILL after KillAfter, or Within
	Within   int64          `json:"within,omitempty"`   // nanoseconds
	Kill     bool           `json:"kill,omitempty"`     // KILL now
}

type setup struct {
	Argv       []byte `json:"argv"`       // a NUL between the words, which need not be UTF-8
	KillAfter  int64  `json:"kill_after"` // nanoseconds
	OwnerGroup int    `json:"owner_group"`
	Foreground bool   `json:"foreground"` // hand the terminal to the command
}

// envDiscard names Options.Discard to whoever is the last to live: the reaper,
// or the guard where there is none.
const envDiscard = "ZKCOORD_GUARD_DISCARD"

// Kind says what an event is.
type Kind string

const (
	Started Kind = "started" // PID is the command's, and the number of its group
	Failed  Kind = "failed"  // the command could not be started: Code and Message say why
	Stopped Kind = "stopped" // Signal stopped the command
	Denied  Kind = "denied"  // Left are processes of the command that this user may not signal
	Exited  Kind = "exited"  // Status, At and Cause are set, Left perhaps
	Gone    Kind = "gone"    // the guard ended without a report; its descendants have been killed, but for Left
)

// Cause is why the guard ended the command. The first cause stays.
type Cause string

const (
	ByItself   Cause = ""         // it did not
	ByDeadline Cause = "deadline" // the deadline was near, or over
	ByStop     Cause = "stop"     // Stop was called
	ByKill     Cause = "kill"     // Kill was called, or a process that guards was killed
)

// Event is what happened to the command.
type Event struct {
	Kind    Kind               `json:"kind"`
	PID     int                `json:"pid,omitempty"`
	Code    int                `json:"code,omitempty"`
	Message []byte             `json:"message,omitempty"`
	Signal  syscall.Signal     `json:"signal,omitempty"`
	Status  syscall.WaitStatus `json:"status,omitempty"`
	At      Instant            `json:"at,omitempty"`
	Cause   Cause              `json:"cause,omitempty"`
	Left    []int              `json:"left,omitempty"` // processes that had to end and could not be made to
	Unsure  bool               `json:"unsure,omitempty"`
}

// Over reports that all processes of the command that had to end have ended.
func (e Event) Over() bool { return !e.Unsure && len(e.Left) == 0 }

// ExitCode is the command's status as a shell gives it: 128+n for signal n.
func (e Event) ExitCode() int {
	if e.Status.Signaled() {
		return 128 + int(e.Status.Signal())
	}
	return e.Status.ExitStatus()
}
