// Command image builds Plimsoll's container image and writes or pushes it. It is run
// in the repository's root, usually as `make image`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/plimsoll-dev/plimsoll/build"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

type options struct {
	name, platforms, output, version string
	push                             bool
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.StringVar(&o.name, "name", "", "registry/repository:tag")
	flags.StringVar(&o.platforms, "platforms", "linux/amd64,linux/arm64", "what to build for, separated by commas")
	flags.StringVar(&o.output, "output", "", "tar to write, in OCI layout")
	flags.BoolVar(&o.push, "push", false, "push to the name's registry, with the credentials of `docker login`")
	flags.StringVar(&o.version, "version", "", "what the program calls itself; empty asks git")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.output == "" && !o.push {
		return o, errors.New("say --output FILE, --push, or both")
	}
	return o, nil
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	ref, err := build.ParseReference(o.name)
	if err != nil {
		return err
	}
	source := build.Source{Version: o.version}
	if o.version == "" {
		if source, err = build.ReadSource(ctx, "."); err != nil {
			return err
		}
	}
	image := build.Image{
		Program:   build.Program{Package: "./cmd/plimsoll"},
		Platforms: strings.Split(o.platforms, ","),
		Source:    source,
	}
	index, err := image.Index(ctx)
	if err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	if o.output != "" {
		if err := os.MkdirAll(filepath.Dir(o.output), 0o755); err != nil {
			return err
		}
		if err := build.WriteArchive(o.output, ref, index); err != nil {
			return err
		}
	}
	if o.push {
		if err := build.Push(ctx, ref, index); err != nil {
			return err
		}
	}
	fmt.Printf("%s@%s\n", ref, digest)
	return nil
}
