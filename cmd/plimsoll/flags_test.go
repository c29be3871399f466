package main

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/plimsoll-dev/plimsoll/test/golden"
)

// TestFlagsAreDocumented keeps docs/flags.md equal to what --help says.
func TestFlagsAreDocumented(t *testing.T) {
	golden.Check(t, "../../docs/flags.md", flagsDocument())
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
