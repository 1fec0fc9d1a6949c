// Package see has the verbs that show and ask: inspect, ls, graph, doctor, top,
// ui, exporter, held, revoke, break and remove.
package see
