package prometheus

import "bytes"

// isPartial reports whether the body of an answer carries "isPartial": true,
// as VictoriaMetrics writes it where a part of its storage did not answer. The
// client library knows no such field.
//
// Looking for the bytes is exact: inside a JSON string the quotes around the
// name would be escaped, and a label of that name has a string for its value.
func isPartial(body []byte) bool {
	name := []byte(`"isPartial"`)
	for {
		at := bytes.Index(body, name)
		if at < 0 {
			return false
		}
		body = body[at+len(name):]
		value, found := bytes.CutPrefix(trimSpace(body), []byte(":"))
		if found && bytes.HasPrefix(trimSpace(value), []byte("true")) {
			return true
		}
	}
}

// trimSpace drops what JSON allows between tokens.
func trimSpace(b []byte) []byte { return bytes.TrimLeft(b, " \t\r\n") }
