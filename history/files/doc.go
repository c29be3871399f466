// Package files reads history from a folder of CSV files.
//
// The folder is laid out as
//
//	<namespace>/<pod>/<container>.csv   a container of a pod
//	<namespace>/<workload>.csv          a workload of one replica, whose only
//	                                    container is app
//
// where each file may be compressed as .csv.gz. Files named manifest.csv,
// folders named extra, hidden files and everything that is not CSV are left
// alone. Pods belong to workloads by their names, as history.Owners has it,
// past pods included; a file of the short form belongs to every workload of its
// namespace and name, whatever the kind.
//
// The first line of a file is the header
//
//	timestamp_seconds,cpu_cores,memory_bytes
//
// in any order; one of the last two may be missing, and an empty cell is no
// sample. A timestamp is the start of its interval in whole seconds since 1970,
// CPU the mean over the interval in cores, memory the peak in it in bytes. The
// interval lasts to the next row, and at most three times the file's median
// step, so that a gap is not taken for usage. The last one lasts a median step.
//
// Rows are given as they are, also where they are finer than the step that a
// query asks for: quantiles are then those of the rows in the file, which is
// what a person would compare them with.
package files
