// Package recommend tests the recommendations of a controller in a real cluster.
package recommend
