package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/load/wire"
)

// requestTimeout leaves room for a program that has hardly any CPU and is asked
// to take a lot of memory.
const requestTimeout = 30 * time.Second

// Client talks to a running load program.
type Client struct{ url string }

// At is a client for the program on a pod's IP and, unless zero, port.
func At(ip string, port int) Client {
	if port == 0 {
		port = wire.Port
	}
	return Client{url: "http://" + net.JoinHostPort(ip, strconv.Itoa(port))}
}

// Report asks the program what it sees and does.
func (c Client) Report(ctx context.Context) (wire.Report, error) {
	return c.do(ctx, http.MethodGet, wire.ReportPath, nil)
}

// Change commands the program, and returns what it does from then on.
func (c Client) Change(ctx context.Context, change wire.Change) (wire.Report, error) {
	body, err := json.Marshal(change)
	if err != nil {
		return wire.Report{}, fmt.Errorf("writing the change: %w", err)
	}
	return c.do(ctx, http.MethodPost, wire.ChangePath, body)
}

func (c Client) do(ctx context.Context, method, path string, body []byte) (wire.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return wire.Report{}, fmt.Errorf("asking the load program: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return wire.Report{}, fmt.Errorf("asking the load program: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return wire.Report{}, fmt.Errorf("asking the load program: %s: %s", response.Status, strings.TrimSpace(string(text)))
	}
	var report wire.Report
	if err := json.NewDecoder(response.Body).Decode(&report); err != nil {
		return wire.Report{}, fmt.Errorf("reading the load program's answer: %w", err)
	}
	return report, nil
}
