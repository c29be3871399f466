// Package openmetrics reads history from OpenMetrics text with timestamps, as
// promtool tsdb create-blocks-from openmetrics takes it: the series of a server,
// written down. It is asked the same queries as a server is.
//
// The text is read once. Samples of the metrics that matter are sorted by day in
// a temporary folder and become blocks there, so that memory is bounded by the
// series and by one day's samples. The folder is gone when Open returns, however
// it does; what is open stays readable.
package openmetrics
