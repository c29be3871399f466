package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"
)

// The formats of logs.
const (
	logJSON = "json"
	logText = "text"
)

// newLog writes to w what is of the level or worse.
func newLog(w io.Writer, format, level string) (logr.Logger, error) {
	var errs []error
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		errs = append(errs, fmt.Errorf("--log-level: %q is none of debug, info, warn, error", level))
	}
	options := &slog.HandlerOptions{Level: least}
	var handler slog.Handler
	switch format {
	case logJSON:
		handler = slog.NewJSONHandler(w, options)
	case logText:
		handler = slog.NewTextHandler(w, options)
	default:
		errs = append(errs, fmt.Errorf("--log-format: %q is neither %s nor %s", format, logJSON, logText))
	}
	if len(errs) > 0 {
		return logr.Discard(), errors.Join(errs...)
	}
	return logr.FromSlogHandler(handler), nil
}

// setLibraryLogs gives the logger to the two libraries that log by a global of
// theirs. It is for the process, and called once.
func setLibraryLogs(log logr.Logger) {
	crlog.SetLogger(log)
	klog.SetLogger(log.WithName("client-go"))
}
