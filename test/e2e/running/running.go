// Package running runs the product's binary for tests against a cluster.
package running

import (
	"testing"

	"github.com/plimsoll-dev/plimsoll/test/cluster"
	"github.com/plimsoll-dev/plimsoll/test/process"
)

// Controller is a running `plimsoll controller`.
type Controller struct {
	t       testing.TB
	process *process.Controller
}

// Start runs the controller against a cluster with further flags, and returns
// when it is ready. It is stopped when the test ends, and its log is shown where
// the test failed.
func Start(t testing.TB, c *cluster.Cluster, flags ...string) *Controller {
	t.Helper()
	p := &Controller{t: t, process: process.Start(t, process.Options{
		Binary: process.Build(t), Kubeconfig: c.KubeconfigPath, Namespace: "default",
		Flags: append([]string{"--leader-elect=false", "--log-format", "text"}, flags...),
	})}
	p.process.AwaitOK(t, "/readyz")
	return p
}

// Kill ends the controller at once, as a node that fails does.
func (p *Controller) Kill() { p.process.Kill() }

// Stop asks the controller to end, and waits until it has in good order.
func (p *Controller) Stop() {
	p.t.Helper()
	p.process.Stop(p.t)
}

// AwaitCycles waits until so many more cycles are done.
func (p *Controller) AwaitCycles(more int) {
	p.t.Helper()
	p.process.AwaitCycles(p.t, p.process.Read(p.t), more)
}

// Sum adds up the series of a metric that have these labels, names and values by
// turns; it is 0 where there are none.
func (p *Controller) Sum(name string, with ...string) float64 {
	p.t.Helper()
	return p.process.Read(p.t).Sum(name, with...)
}
