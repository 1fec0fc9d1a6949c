// Package kafkatest shows how a lock fences producers of Kafka, with a broker
// in memory that refuses as Kafka does. It is a module of its own, and no part
// of "make proofs": what it links compiles for longer than all that it tests.
// "make kafka" runs it.
package kafkatest
