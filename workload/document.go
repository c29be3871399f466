package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// place is where an object stands.
type place struct {
	file string
	// line is the first of the document with content.
	line int
	// document and item count from 1; item is 0 outside a list.
	document, item int
}

// String is the place as messages and origins show it.
func (p place) String() string {
	s := fmt.Sprintf("%s:%d (document %d)", p.file, p.line, p.document)
	if p.item > 0 {
		s = fmt.Sprintf("%s, item %d)", strings.TrimSuffix(s, ")"), p.item)
	}
	return s
}

// document is one YAML document of a file.
type document struct {
	place
	text []byte
	// first is the line of the file on which text begins.
	first int
}

// split takes a file apart at the lines that begin with "---". Documents of
// nothing but blanks and comments are left out and not counted. The separator
// stays, since content may follow it, and so lines can be counted.
func split(file string, data []byte) []document {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var all []document
	begin, first, line := 0, 1, 0
	finish := func(end int) {
		d := document{place{file: file, document: len(all) + 1}, data[begin:end], first}
		if offset, ok := content(d.text); ok {
			d.line = first + offset
			all = append(all, d)
		}
		begin, first = end, line
	}
	for at := 0; at < len(data); {
		line++
		end := len(data)
		if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if isSeparator(data[at:end]) {
			finish(at)
		}
		at = end
	}
	finish(len(data))
	return all
}

func isSeparator(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	return ok && (len(rest) == 0 || bytes.ContainsAny(rest[:1], " \t\r\n"))
}

// content returns how many lines precede the first with content.
func content(text []byte) (offset int, ok bool) {
	for line := range bytes.Lines(text) {
		rest := line
		if isSeparator(line) {
			rest = line[3:]
		}
		rest = bytes.TrimSpace(rest)
		if len(rest) > 0 && rest[0] != '#' && rest[0] != '%' && !bytes.Equal(rest, []byte("...")) {
			return offset, true
		}
		offset++
	}
	return 0, false
}

// toJSON converts the document. Duplicate keys are an error only where it is
// strict; otherwise the last one counts, as kubectl has it.
func (d document) toJSON(strict bool) ([]byte, error) {
	if text := bytes.TrimSpace(d.text); len(text) > 0 && text[0] == '{' && json.Valid(text) {
		return text, nil // YAML does not take the tabs of indented JSON.
	}
	convert := yaml.YAMLToJSON
	if strict {
		convert = yaml.YAMLToJSONStrict
	}
	raw, err := convert(d.text)
	if err != nil {
		return nil, d.locate(err)
	}
	return raw, nil
}

// parserLine is how the YAML parser says where something is.
var parserLine = regexp.MustCompile(`\bline (\d+): `)

// syntaxError is what the YAML parser says.
type syntaxError string

func (e syntaxError) Error() string { return string(e) }

// locate puts the line that the parser names in front, counted from the
// beginning of the file.
func (d document) locate(err error) error {
	message := err.Error()
	for _, prefix := range []string{"error converting YAML to JSON: ", "yaml: ", "unmarshal errors:\n  "} {
		message = strings.TrimPrefix(message, prefix)
	}
	at := d.place
	if m := parserLine.FindStringSubmatchIndex(message); m != nil {
		if n, err := strconv.Atoi(message[m[2]:m[3]]); err == nil {
			at.line = d.first + n - 1
		}
		message = message[:m[0]] + message[m[1]:]
	}
	return located{at, syntaxError(message)}
}

// located is an error with the place that it speaks of.
type located struct {
	at  place
	err error
}

func (e located) Error() string { return e.at.String() + ": " + e.err.Error() }
func (e located) Unwrap() error { return e.err }

var errTemplate = errors.New("this is a Helm template; render it first and give the output: helm template CHART | plimsoll … --manifests -")

// orTemplate replaces the error by a better one where the document is a
// template that nobody rendered: the braces are what YAML does not take, or
// stand where a name or number was expected.
func (d document) orTemplate(err error) error {
	before, _, ok := bytes.Cut(d.text, []byte("{{"))
	var syntax syntaxError
	if err == nil || !ok || !errors.As(err, &syntax) && !errors.Is(err, errTemplate) && !strings.Contains(err.Error(), "{{") {
		return err
	}
	at := d.place
	at.line = d.first + bytes.Count(before, []byte("\n"))
	return located{at, errTemplate}
}
