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
var Formats = []string{"table", "wide", "json", "yaml", "csv", "html", "patch"}

// CheckFormat refuses an unknown format.
func CheckFormat(format string) error {
	if !slices.Contains(Formats, format) {
		return fmt.Errorf("--output: %q is not one of %s", format, strings.Join(Formats, ", "))
	}
	return nil
}

// FormatHTML needs more than the list; see Page.
const FormatHTML = "html"

// Write writes the list in one of the formats but HTML. Colour marks severity in tables.
func (l List) Write(w io.Writer, format string, colour bool) error {
	switch format {
	case "json", "yaml":
		return encode(w, format, l)
	case "csv":
		return l.writeCSV(w)
	case "patch":
		return l.writePatches(w)
	}
	return l.writeTable(w, format == "wide", colour)
}

func encode(w io.Writer, format string, value any) error {
	if format == "yaml" {
		text, err := yaml.Marshal(value)
		if err != nil {
			return fmt.Errorf("encoding as YAML: %w", err)
		}
		_, err = w.Write(text)
		return err
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
