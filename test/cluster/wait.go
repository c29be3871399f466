package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

const (
	// pollEvery is how often a readiness endpoint is asked. They answer in well under
	// a millisecond, and every wait of the start adds half of this.
	pollEvery = 40 * time.Millisecond
	// logTail is how much of a component's log an error carries.
	logTail = 4000
)

// await polls check until it succeeds. The error tells what was waited for, how
// check last failed, and the end of the component's log.
func (c *Cluster) await(ctx context.Context, component, state string, check func(context.Context) error) error {
	ended := c.processes[component].Ended()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("waiting until %s %s: it has ended: %s\n%s", component, state, c.processes[component].Status(), c.LogTail(component))
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return context.Cause(ctx) // By the caller: nothing is wrong with the component.
			}
			return fmt.Errorf("waiting until %s %s: %w: last: %w\n%s", component, state, context.Cause(ctx), err, c.LogTail(component))
		case <-time.After(pollEvery):
		}
	}
}

// getOK succeeds when the URL answers 200.
func getOK(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 500))
		return fmt.Errorf("GET %s: %s: %s", url, resp.Status, bytes.TrimSpace(body))
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// tailOf returns the end of a file, or why it cannot.
func tailOf(path string, n int64) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err.Error()
	}
	raw, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-n), n))
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
