package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Formats are the output formats, in the order in which help shows them.
var Formats = []string{"table", "wide", "json", "yaml", "csv", "patch"}

// CheckFormat refuses an unknown format.
func CheckFormat(format string) error {
	if !slices.Contains(Formats, format) {
		return fmt.Errorf("--output: %q is not one of %s", format, strings.Join(Formats, ", "))
	}
	return nil
}

// Write writes the list in one of the formats. Colour marks severity in tables.
func (l List) Write(w io.Writer, format string, colour bool) error {
	switch format {
	case "json":
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(l)
	case "yaml":
		text, err := yaml.Marshal(l)
		if err != nil {
			return fmt.Errorf("encoding recommendations as YAML: %w", err)
		}
		_, err = w.Write(text)
		return err
	case "csv":
		return l.writeCSV(w)
	case "patch":
		return l.writePatches(w)
	}
	return l.writeTable(w, format == "wide", colour)
}
