package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v2"
	"golang.org/x/term"

	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/history/files"
	"github.com/plimsoll-dev/plimsoll/history/openmetrics"
	"github.com/plimsoll-dev/plimsoll/history/prometheus"
	"github.com/plimsoll-dev/plimsoll/history/tsdb"
)

// sourceOptions are the flags that say where history comes from.
type sourceOptions struct {
	folder     string
	url        string
	configFile string
	matchers   []string
}

func (o *sourceOptions) bind(f *pflag.FlagSet) {
	f.StringVar(&o.folder, "history", "", "folder of CSV files (<namespace>/<workload>.csv or <namespace>/<pod>/<container>.csv), a Prometheus data folder, or OpenMetrics text (a file, or a folder of *.om)")
	f.StringVar(&o.url, "prometheus", "", "URL of a Prometheus-compatible server")
	o.bindAsked(f)
}

// bindAsked adds the flags that say what is asked, and not whom.
func (o *sourceOptions) bindAsked(f *pflag.FlagSet) {
	f.StringVar(&o.configFile, "prometheus-config", "", "YAML file with url, http (auth, TLS, headers), matchers, metric and label names; see docs/sources.md")
	f.StringArrayVar(&o.matchers, "matcher", nil, `extra matcher of every series, such as cluster="a"; repeatable`)
}

// openSource is a source, and how to find workloads in it.
type openSource struct {
	history.Source
	// discover finds workloads at an instant; zero is the source's present.
	discover func(ctx context.Context, at time.Time) ([]history.WorkloadKey, error)
	// noun is what the source is called in messages.
	noun string
}

// close closes files that the source has open. They were only read.
func (s openSource) close() {
	if c, ok := s.Source.(io.Closer); ok {
		_ = c.Close()
	}
}

// open opens the one source that the flags name, in a folder of CSV only the
// part of the given namespace; empty is all.
func (o *sourceOptions) open(ctx context.Context, namespace string) (openSource, error) {
	if err := o.oneOf(); err != nil {
		return openSource{}, err
	}
	settings, err := o.settings()
	if err != nil {
		return openSource{}, err
	}
	var s openSource
	switch {
	case o.folder == "":
		return openServer(settings)
	case o.isCSV():
		s, err = o.openCSV(namespace)
	case settings.URL != "":
		return openSource{}, fmt.Errorf("--history and the url in %s name two sources: leave one of them out", o.configFile)
	default:
		s, err = o.openData(ctx, settings)
	}
	if err != nil {
		return openSource{}, fmt.Errorf("--history: %w", err)
	}
	return s, nil
}

// named says whether any flag names a source.
func (o *sourceOptions) named() bool { return o.folder != "" || o.url != "" || o.configFile != "" }

// oneOf refuses flags that name no source, or two.
func (o *sourceOptions) oneOf() error {
	switch {
	case o.folder == "" && o.url == "" && o.configFile == "":
		return errors.New("name a source of history: --history DIR, or --prometheus URL")
	case o.folder != "" && o.url != "":
		return errors.New("--history and --prometheus name two sources: write one of them")
	}
	return nil
}

// isCSV reports whether history is a folder of CSV, as it is unless it is
// recognised as something else.
func (o *sourceOptions) isCSV() bool {
	return o.folder != "" && !tsdb.Is(o.folder) && !openmetrics.Is(o.folder)
}

func (o *sourceOptions) openCSV(namespace string) (openSource, error) {
	if o.configFile != "" || len(o.matchers) > 0 {
		return openSource{}, fmt.Errorf("%s is a folder of CSV files, of which --prometheus-config and --matcher say nothing: leave them out", o.folder)
	}
	source, err := files.Open(o.folder)
	if err != nil {
		return openSource{}, err
	}
	if namespace != "" {
		source = source.In(namespace)
	}
	discover := func(ctx context.Context, _ time.Time) ([]history.WorkloadKey, error) { return source.Discover(ctx) }
	return openSource{Source: source, discover: discover, noun: "the folder " + o.folder}, nil
}

// openData opens a Prometheus data folder, or series that were written down.
func (o *sourceOptions) openData(ctx context.Context, settings prometheus.Settings) (openSource, error) {
	open, noun := tsdb.Open, "the data folder "
	if !tsdb.Is(o.folder) {
		open, noun = openmetrics.Open, "the text in "
	}
	source, err := open(ctx, o.folder, settings)
	if err != nil {
		return openSource{}, err
	}
	return openSource{Source: source, discover: source.Discover, noun: noun + o.folder}, nil
}

func openServer(settings prometheus.Settings) (openSource, error) {
	source, err := prometheus.New(settings)
	if err != nil {
		return openSource{}, fmt.Errorf("--prometheus: %w", err)
	}
	return openSource{Source: source, discover: source.Discover, noun: "the server"}, nil
}

// settings are those of the file, with what flags change of them.
func (o *sourceOptions) settings() (prometheus.Settings, error) {
	settings := prometheus.DefaultSettings()
	if o.configFile != "" {
		text, err := os.ReadFile(o.configFile)
		if err != nil {
			return settings, fmt.Errorf("--prometheus-config: %w", err)
		}
		if err := yaml.UnmarshalStrict(text, &settings); err != nil {
			return settings, fmt.Errorf("--prometheus-config: reading %s: %w", o.configFile, err)
		}
	}
	if o.url != "" {
		settings.URL = o.url
	}
	settings.Matchers = append(settings.Matchers, o.matchers...)
	settings.Progress = progress(os.Stderr, "Reading history")
	if settings.RemoteRead == prometheus.RemoteReadAlways {
		// Where it is left to the source, either way is right.
		settings.Note = func(text string) { fmt.Fprintln(os.Stderr, "Warning:", text) }
	}
	return settings, nil
}

// colours says whether output goes to a terminal whose user wants colours
// (https://no-color.org).
func colours(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == ""
}
