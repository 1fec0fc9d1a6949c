package guard

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// prevail makes this process run before others, as far as it may: at real-time
// priority, or else at the best nice value; never killed for want of memory,
// nor swapped out. What it has forked before is not affected.
func prevail() {
	_ = unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE | unix.MCL_ONFAULT)
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0)
	threads, _ := os.ReadDir("/proc/self/task") // those to come inherit it
	for _, thread := range threads {
		if tid, err := strconv.Atoi(thread.Name()); err == nil {
			raisePriority(tid)
		}
	}
}

func raisePriority(tid int) {
	if unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}, 0) == nil {
		return
	}
	for nice := -20; nice < 0 && unix.Setpriority(unix.PRIO_PROCESS, tid, nice) != nil; nice++ {
	}
}

// shed gives back the pages of the program's file that its start has read. The
// guard's own are read again when they are needed, and the others would be
// locked into memory for nothing. A mapping with pages of this process' own,
// such as relocated data, stays: they could not be read again.
func shed() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	var from, to uintptr
	ours := false
	maps, _ := os.ReadFile("/proc/self/smaps") // without them, the pages stay
	for line := range strings.Lines(string(maps)) {
		var begin, end uintptr
		var access string
		switch own, isOwn := strings.CutPrefix(line, "Anonymous:"); {
		case isOwn && ours && strings.TrimSpace(own) == "0 kB":
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED)
		case line[0] >= 'A' && line[0] <= 'Z': // another figure of the mapping
		default:
			n, _ := fmt.Sscanf(line, "%x-%x %s", &begin, &end, &access)
			from, to, ours = begin, end, n == 3 && access[1] == '-' && strings.Contains(line, program)
		}
	}
}
