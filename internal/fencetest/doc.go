// Package fencetest tests coord/fence with the databases that it is for:
// PostgreSQL, MariaDB and SQLite, as Debian has them. It is a module of its
// own, for their drivers. Build it with the tag libsqlite3, as "make proofs"
// does: without it, the driver compiles an SQLite of its own.
//
// The variable ZKTEST_SERVERS selects the databases as it selects servers (see
// internal/zktest): "embedded" is SQLite only; with "all", or in CI, a database
// that is not installed is an error.
package fencetest
