// Package podtest is what tests with pods on an API server share: making pods,
// resizing them, and waiting for what becomes of them.
package podtest
