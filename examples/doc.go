// Package examples has a program for each of the common jobs, to start with one
// command and to copy from:
//
//	go run ./examples/barrier     a job that all start and finish together
//	go run ./examples/cron        each slot of a schedule, once
//	go run ./examples/leader      one leader, which steps down when it is ill
//	go run ./examples/limit       at most two at a time
//	go run ./examples/migrations  migrations at start-up, done once
//	go run ./examples/report      a file that a paused writer cannot spoil
//	go run ./examples/shards      tenants spread over replicas
//	go run ./examples/workers     jobs for any of many workers, none lost
//
// Each starts three replicas of itself, and kills or pauses one of them. It
// brings its own server, unless the variable ZK_SERVERS names others.
package examples
