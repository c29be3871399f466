package main

import (
	"os"
	"strings"
	"testing"
)

// TestTheReadmeShowsWhatIsPrinted: the lines of the README's example are lines
// of the main job's output.
func TestTheReadmeShowsWhatIsPrinted(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	printed := execute(t, "", "recommend", "--history", "../../examples/history", "--manifests", "../../examples/manifests").out
	shown := 0
	for line := range strings.Lines(string(readme)) {
		if !strings.HasPrefix(line, "shop ") && !strings.HasPrefix(line, "NAMESPACE ") {
			continue
		}
		shown++
		if !strings.Contains(printed, line) {
			t.Errorf("the README shows\n%s, and the command prints\n%s", line, printed)
		}
	}
	if shown < 3 {
		t.Errorf("the README shows %d lines of output", shown)
	}
}
