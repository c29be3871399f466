// Package golden keeps documents and outputs equal to what code says.
package golden

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the files that tests compare with")

// Check fails where the file at path differs from want, and with -update
// rewrites it first (make golden): the diff is then to be read in review.
func Check(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s differs from what the code says (make golden rewrites it; -want +got):\n%s", path, diff)
	}
}
