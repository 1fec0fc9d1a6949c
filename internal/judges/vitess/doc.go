// Package vitess has Vitess's suite for topology servers judge the locks and
// elections, and zkembed under Vitess's own client of ZooKeeper. It is a module
// of its own, and no part of "make proofs": Vitess compiles for minutes.
package vitess
