// Package tsdb reads history from a Prometheus data folder, with the queries
// that a server would get and Prometheus's own engine, without a server.
//
// The folder may be a copy, a snapshot, or that of a server that runs: nothing
// in it is written or locked. What the server holds in memory is read from its
// write-ahead log; a last record that is half written is left out.
package tsdb
