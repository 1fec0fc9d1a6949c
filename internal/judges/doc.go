// Package judges has suites that others wrote for the backends of their
// programs judge the recipes, through small adapters: Trillian's for an
// election, Vault's for its active node, Dapr's for a lock with owners and
// expiry. docs/judged.md lists them. It is a module of its own, since nobody
// else needs what they link; so is Vitess's suite, in the folder below, which
// compiles for minutes.
package judges
