package soak

import (
	"math"
	"runtime"
	"strings"
)

// heapAllowance is how much of the heap the library and the ZooKeeper client
// may have in use for each client at the end of the soak, when no worker holds
// or waits any more and the clients are still open. A connection has two
// buffers of 1.5 MiB, a former one may not be collected yet, and the estimate
// is made from samples. A leak of 100 bytes with each grant comes to more in an
// hour.
const heapAllowance = 8 << 20

// libraries are the packages whose allocations are the library's.
var libraries = []string{"github.com/zkcoord/zkcoord/coord", "github.com/go-zookeeper/zk."}

// harness are the packages whose allocations are the test's: they keep the
// whole history.
const harness = "github.com/zkcoord/zkcoord/internal/"

// libraryHeap estimates how many bytes allocated by the library are in use,
// from the samples that the runtime takes. The size of the whole heap says
// little, since the history grows all the time.
func libraryHeap() (bytes float64) {
	runtime.GC()
	runtime.GC() // the profile is that of the last cycle but one
	n, _ := runtime.MemProfile(nil, false)
	samples := make([]runtime.MemProfileRecord, n+100)
	n, ok := runtime.MemProfile(samples, false)
	if !ok {
		return 0
	}
	for _, s := range samples[:n] {
		if byLibrary(s.Stack()) {
			bytes += scaled(s.InUseObjects(), s.InUseBytes(), runtime.MemProfileRate)
		}
	}
	return bytes
}

// byLibrary reports whether the innermost function that is neither the
// runtime's nor the standard library's is the library's. The text of an error
// counts for its caller.
func byLibrary(stack []uintptr) bool {
	for frames := runtime.CallersFrames(stack); ; {
		frame, more := frames.Next()
		name := frame.Function
		if strings.HasPrefix(name, harness) {
			return false
		}
		for _, prefix := range libraries {
			if strings.HasPrefix(name, prefix) && !strings.HasSuffix(name, ").Error") {
				return true
			}
		}
		if !more {
			return false
		}
	}
}

// scaled estimates what the samples stand for: an allocation of a size is
// sampled with a probability of 1-exp(-size/rate).
func scaled(objects, bytes int64, rate int) float64 {
	if objects == 0 || bytes == 0 {
		return 0
	}
	if rate <= 1 {
		return float64(bytes)
	}
	size := float64(bytes) / float64(objects)
	return float64(bytes) / (1 - math.Exp(-size/float64(rate)))
}
