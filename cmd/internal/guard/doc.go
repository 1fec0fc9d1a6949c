// Package guard runs a command that must not outlive a lock.
//
// # What
//
// The process that holds a lock, the owner, may be frozen or killed at any
// moment, and can then no longer stop what it started. So a second process, the
// guard, stands between the owner and the command. The guard starts the command
// and learns over a pipe until when the lock can be trusted. It needs no
// further order from the owner to end the command. On Linux a third one, the
// reaper, stands between the owner and the guard, for the case that the guard
// is killed.
//
//	owner ──▶ reaper ──▶ guard ──▶ command (a process group of its own)
//	      ──orders──────▶
//	      ◀─reports──────
//
// The owner calls Start, then Extend whenever the deadline has moved, and reads
// Events. Any program that links this package becomes a guard when its one
// argument is Verb.
//
// # Guarantees
//
//   - The command is sent TERM at deadline - KillAfter and KILL at the
//     deadline, even if the owner does nothing. Once TERM was sent, a later
//     deadline changes nothing: the end is an interruption, and KILL comes at
//     the deadline of that time.
//   - The command is sent KILL as soon as the owner is gone: the kernel closes
//     the owner's end of the pipes.
//   - When the guard is gone, the reaper sends KILL to all of its descendants
//     until none is left, and then reports to the owner. When the reaper is
//     gone, the guard sends KILL.
//   - Files that the owner has the guard keep (Options.Keep, Process.Keep) stay
//     open as long as the reaper lives, and, when the owner is gone, as long as
//     anything lives that the command has started: an attendant that waits for
//     the end of a connection does not take the owner's death for the
//     command's. On other systems than Linux the guard keeps them until it
//     ends.
//   - On Linux, when the owner is gone and nothing is left of the command, the
//     reaper becomes the program's verb FarewellVerb, which closes the owner's
//     session (Options.Farewell). If something is left for as long as the
//     session may last, the reaper ends without doing so.
//   - A file that the owner made for the command (Options.Discard) is removed
//     after the command if the owner is gone.
//   - Events report processes that had to end and could not be made to
//     (Event.Left, Event.Unsure): nothing may be released then.
//   - The guard does not wait until its reports are read, nor the owner until
//     its orders are.
//   - Deadlines are instants of a clock that goes on while the system is
//     suspended, where the platform has one.
//   - Signals go to the command's whole process group. On Linux TERM and KILL
//     also reach every other descendant in the command's session, such as the
//     jobs of an interactive shell, each of which has a group of its own.
//   - The command gets three descriptors: standard input, output and error.
//     Signals that the guard ignores are not ignored in the command, nor does
//     it inherit the guard's priority.
//   - Where the owner's group is the foreground group of its terminal, the
//     command's group takes its place until it ends. So an interrupt or stop
//     key reaches the command. If it was made to end, the terminal's modes are
//     restored.
//
// # Not guaranteed
//
// A descendant that made a session of its own (a daemon) is not stopped, nor
// one that this user may not signal. If guard and reaper are killed in the same
// instant, the command itself dies, but not what it had started in other
// groups.
package guard
