//go:build e2e

package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/plimsoll-dev/plimsoll/test/cluster"
	"github.com/plimsoll-dev/plimsoll/test/image/jvm"
	"github.com/plimsoll-dev/plimsoll/test/load"
	"github.com/plimsoll-dev/plimsoll/test/ownerexporter"
)

// shared is the one cluster of all tests: a start costs more than most tests.
// Each test has a namespace of its own and leaves the node empty.
var shared *cluster.Cluster

// waiting is how many parallel tests run at once, unless -parallel says otherwise:
// they wait for the kubelet far more than they compute.
const waiting = "8"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", waiting); err != nil {
		panic(err) // The testing package has lost a flag.
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if os.Getuid() != 0 {
		return 1, errors.New("these tests run a kubelet and containers, which takes root: run `sudo make e2e`, or `make test` for the tests that do not")
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	exporter, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 1, fmt.Errorf("listening for the owner exporter: %w", err)
	}
	options, err := options(ctx, exporter.Addr().String())
	if err != nil {
		return 1, err
	}
	if shared, err = cluster.Launch(ctx, options); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.Stop()) }()

	served := make(chan error, 1)
	go func() { served <- ownerexporter.Serve(ctx, exporter, shared.Config) }()
	if code = m.Run(); code != 0 {
		fmt.Fprintln(os.Stderr, shared.LogTail("kubelet"))
	}
	cancel()
	return code, <-served
}

func options(ctx context.Context, exporter string) (cluster.Options, error) {
	loadTar, err := load.Image().Tar(ctx)
	if err != nil {
		return cluster.Options{}, err
	}
	jvmTar, err := jvm.Tar(ctx)
	if err != nil {
		return cluster.Options{}, err
	}
	return cluster.Options{
		Images:        []string{loadTar, jvmTar},
		Prometheus:    true,
		ScrapeTargets: []cluster.ScrapeTarget{{Job: "ownerexporter", Address: exporter}},
		MetricsServer: true,
	}, nil
}
