// Package guard runs a command that must not outlive a lock.
//
// # What
//
// The process that holds a lock, the owner, may be frozen or killed at any moment, and can then no longer stop what it
// started. So a second process, the guard, stands between the owner and the command. The guard starts the command and
// learns over a pipe until when the lock can be trusted. It needs no further word from the owner to end the command.
//
//	owner ──orders──▶ guard ──▶ command (a process group of its own)
//	      ◀─reports──
//
// The owner calls Start, then Extend whenever the deadline has moved, and reads Events. The hidden verb of the program
// that Start runs calls Main.
//
// # Guarantees
//
//   - The command is sent TERM at deadline - KillAfter and KILL at the deadline, whatever the owner does.
//   - The command is sent KILL as soon as the owner is gone: the kernel closes the owner's end of the pipe.
//   - The command is sent KILL when the guard is gone: by the kernel on Linux (parent-death signal), and by the owner,
//     who sees the end of the reports.
//   - Deadlines are instants of a clock that goes on while the system is suspended, where the platform has one.
//   - Signals go to the command's whole process group. On Linux TERM and KILL also reach every other descendant in the
//     command's session, such as the jobs of an interactive shell, each of which has a group of its own.
//   - The command gets three descriptors: standard input, output and error. Signals that the guard ignores are not
//     ignored in the command.
//   - Where the owner's group is the foreground group of its terminal, the command's group takes its place until it
//     ends. So an interrupt or stop key reaches the command.
//
// # Not guaranteed
//
// A descendant that made a session of its own (a daemon) is not stopped. If guard and owner are killed in the same
// instant, on Linux the command itself dies, but not what it had started.
package guard
