// Command cluster starts the test cluster for a person to work with, and ends it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/cluster"
)

const usage = `usage:
  cluster up [flags]   start a cluster that stays until "cluster down"
  cluster down         end it, and clean up after clusters that were killed

"cluster up -h" lists the flags.
`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(args) == 0 {
		return fmt.Errorf("no command\n%s", usage)
	}
	switch args[0] {
	case "up":
		return up(ctx, args[1:])
	case "down":
		return down(ctx)
	}
	return fmt.Errorf("unknown command %q\n%s", args[0], usage)
}

func up(ctx context.Context, args []string) error {
	var o cluster.Options
	flags := flag.NewFlagSet("cluster up", flag.ExitOnError)
	flags.BoolVar(&o.ControlPlaneOnly, "control-plane-only", false, "etcd and kube-apiserver only; needs no root")
	flags.BoolVar(&o.StaticCPUManager, "static-cpu-manager", false, "give whole cores to containers that ask for them")
	flags.BoolVar(&o.AuditLog, "audit-log", false, "log what is asked of the API server")
	flags.BoolVar(&o.APIFromPods, "api-from-pods", false, "let pods reach the API server; takes port 443 of the pod network's gateway")
	flags.BoolVar(&o.Prometheus, "prometheus", true, "run Prometheus, scraping the kubelet")
	flags.BoolVar(&o.MetricsServer, "metrics-server", true, "run metrics-server")
	flags.Func("image", "import the image tar of this `path`; may be repeated", func(path string) error {
		o.Images = append(o.Images, path)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}

	start := time.Now()
	c, err := cluster.Launch(ctx, o)
	if err != nil {
		return err
	}
	if err := c.Detach(); err != nil {
		return errors.Join(err, c.Stop())
	}
	fmt.Fprintf(os.Stderr, "ready in %s; everything of it is in %s\n", time.Since(start).Round(100*time.Millisecond), c.Dir())
	if o.Prometheus {
		fmt.Fprintf(os.Stderr, "Prometheus: %s\n", c.PrometheusURL())
	}
	fmt.Printf("export KUBECONFIG=%s\n", c.KubeconfigPath)
	return nil
}

func down(ctx context.Context) error {
	ended, err := cluster.Down(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "ended %d\n", ended)
	return nil
}
