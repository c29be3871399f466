// Package jvm makes the image of a small Java program on a real JVM, from
// Debian's packages and without a registry.
package jvm

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	"github.com/plimsoll-dev/plimsoll/test/image"
)

// Reference is the image's name for pods.
const Reference = "localhost/plimsoll-jvm:test"

//go:embed Heap.java
var source []byte

// Tar returns a docker-archive tar of the image. The first time it needs
// apt-get, dpkg and the Debian archive, and about half a minute.
func Tar(ctx context.Context) (string, error) {
	return image.Cached("jvm-"+key()+".tar", func(path string) error {
		return assemble(ctx, path)
	})
}

// key changes with everything that decides what is in the image, except for the
// packages' versions: a newer JVM is not worth a build of its own.
func key() string {
	hash := sha256.New()
	hash.Write(source)
	fmt.Fprint(hash, packages, modules)
	return hex.EncodeToString(hash.Sum(nil))[:16]
}

// Report is what the JVM says about its heap.
type Report struct {
	MaxHeapBytes        int64 `json:"maxHeapBytes"`
	UsedHeapBytes       int64 `json:"usedHeapBytes"`
	AvailableProcessors int   `json:"availableProcessors"`
}

// Ask asks the program on a pod's IP for its report.
func Ask(ctx context.Context, ip string) (Report, error) {
	return get(ctx, ip, "/report")
}

// Hold has the program hold this many bytes of its heap, in whole MiB, instead of
// what it held.
func Hold(ctx context.Context, ip string, bytes int64) (Report, error) {
	return get(ctx, ip, "/hold?"+strconv.FormatInt(bytes, 10))
}

func get(ctx context.Context, ip, path string) (Report, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(ip, "8080")+path, nil)
	if err != nil {
		return Report{}, fmt.Errorf("asking the JVM: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return Report{}, fmt.Errorf("asking the JVM: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return Report{}, fmt.Errorf("reading the JVM's answer: %w", err)
	}
	var report Report
	if err := json.Unmarshal(body, &report); err != nil {
		return Report{}, fmt.Errorf("reading the JVM's answer %q: %w", body, err)
	}
	return report, nil
}
