// Package backtest replays recorded usage against sizing strategies: what would
// each have asked for, how much of that would have lain idle, and what would
// have been short, killed or resized on the way. The package is pure; a replay
// is causal, so that a strategy sees a sample only once its interval is over.
//
// A Series is replayed by Replay, one strategy at a time, or by Run, many at
// once. The protocol is that of docs/benchmarks.md.
package backtest
