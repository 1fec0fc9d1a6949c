// Package bench compares zkcoord with other locks, barriers and queues, and
// with the limits of ZooKeeper's protocol, on the same servers in the same run.
//
//	make bench        some minutes on single servers; the report goes to
//	                  artefacts/bench
//	make bench-full   many repetitions; the report is docs/benchmarks.md
//	make bench-scale  how the cost grows (scaleRows); the report is
//	                  docs/scaling.md
//
// # How it measures
//
// A [contender] is a program of its own, which keeps its processor time and
// memory apart from the others': this test binary again for contenders in Go,
// testdata/java for Curator, testdata/python for Kazoo. All speak the same
// lines on their standard input and output (program.go).
//
// A site is where they run: one server or three, over the loopback interface or
// over links with a delay each way. A row of the table in rows.go is a workload
// with a few sizes, and the contenders that can do it. In each repetition every
// contender of a row has its turn, each time in another order; a ratio compares
// two contenders within one repetition, and what is reported is the median over
// the repetitions. Before the first of them each contender runs once behind a
// proxy that counts requests, answers and bytes; that also warms it up. Links
// are such proxies, too, and count all the time.
//
// A run replaces what it measured in figures.json (or scaling.json), in the
// folder benchmarks next to the document, and writes tables and charts from all
// that is there.
//
// All sessions of a contender are in one process, unless the row says
// otherwise: one clock takes the time from one grant to the next. Sessions take
// the servers of an ensemble by turns, followers first.
package bench
