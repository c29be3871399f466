package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v2"
	"golang.org/x/term"

	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/history/files"
	"github.com/plimsoll-dev/plimsoll/history/prometheus"
)

// sourceOptions are the flags that say where history comes from.
type sourceOptions struct {
	folder     string
	url        string
	configFile string
	matchers   []string
}

func (o *sourceOptions) bind(f *pflag.FlagSet) {
	f.StringVar(&o.folder, "history", "", "folder of CSV files: <namespace>/<workload>.csv or <namespace>/<pod>/<container>.csv")
	f.StringVar(&o.url, "prometheus", "", "URL of a Prometheus-compatible server")
	f.StringVar(&o.configFile, "prometheus-config", "", "YAML file with url, http (auth, TLS, headers), matchers, metric and label names; see docs/sources.md")
	f.StringArrayVar(&o.matchers, "matcher", nil, `extra matcher of every series, such as cluster="a"; repeatable`)
}

// openSource is a source, and how to find workloads in it where it can.
type openSource struct {
	history.Source
	discover func(context.Context) ([]history.WorkloadKey, error)
	// noun is what the source is called in messages.
	noun string
}

// open opens the one source that the flags name, in a folder only the part of
// the given namespace; empty is all.
func (o *sourceOptions) open(_ context.Context, namespace string) (openSource, error) {
	if err := o.oneOf(); err != nil {
		return openSource{}, err
	}
	if o.folder == "" {
		return o.openServer()
	}
	source, err := files.Open(o.folder)
	if err != nil {
		return openSource{}, fmt.Errorf("--history: %w", err)
	}
	if namespace != "" {
		source = source.In(namespace)
	}
	return openSource{Source: source, discover: source.Discover, noun: "the folder " + o.folder}, nil
}

// oneOf refuses flags that name no source, or two.
func (o *sourceOptions) oneOf() error {
	server := o.url != "" || o.configFile != ""
	switch {
	case o.folder == "" && !server:
		return errors.New("name a source of history: --history DIR, or --prometheus URL")
	case o.folder != "" && server:
		return errors.New("--history and --prometheus name two sources: write one of them")
	}
	return nil
}

func (o *sourceOptions) openServer() (openSource, error) {
	settings := prometheus.DefaultSettings()
	if o.configFile != "" {
		text, err := os.ReadFile(o.configFile)
		if err != nil {
			return openSource{}, fmt.Errorf("--prometheus-config: %w", err)
		}
		if err := yaml.UnmarshalStrict(text, &settings); err != nil {
			return openSource{}, fmt.Errorf("--prometheus-config: reading %s: %w", o.configFile, err)
		}
	}
	if o.url != "" {
		settings.URL = o.url
	}
	settings.Matchers = append(settings.Matchers, o.matchers...)
	settings.Progress = progress(os.Stderr, "Reading history")
	source, err := prometheus.New(settings)
	if err != nil {
		return openSource{}, fmt.Errorf("--prometheus: %w", err)
	}
	return openSource{Source: source, noun: "the server"}, nil
}

// colours says whether output goes to a terminal whose user wants colours
// (https://no-color.org).
func colours(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == ""
}
