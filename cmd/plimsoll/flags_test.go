package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "rewrite the documents that tests check")

// TestFlagsAreDocumented keeps docs/flags.md equal to what --help says.
func TestFlagsAreDocumented(t *testing.T) {
	const doc = "../../docs/flags.md"
	want := flagsDocument()
	if *update {
		if err := os.WriteFile(doc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/flags.md differs from the flags (make golden rewrites it; -want +got):\n%s", diff)
	}
}

func flagsDocument() string {
	var doc strings.Builder
	doc.WriteString("# Flags\n\nWritten from the commands by `make golden`.\n")
	root := newRoot(streams{strings.NewReader(""), io.Discard, io.Discard})
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" && c.Name() != "completion" {
			document(&doc, c)
		}
	}
	return doc.String()
}

func document(doc *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(doc, "\n## plimsoll %s\n\n%s\n\n```\nplimsoll %s\n\n%s```\n", c.Name(), c.Long, c.Use, c.LocalFlags().FlagUsagesWrapped(120))
}
