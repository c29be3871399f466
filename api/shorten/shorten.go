// Package shorten bounds texts that others wrote, or that grow with what they are
// about, to what has room for them.
package shorten

import (
	"strings"
	"unicode/utf8"
)

// ellipsis ends what was cut.
const ellipsis = "…"

// mostNote is what the API server takes for the note of an event, in bytes. It
// refuses the event otherwise.
const mostNote = 1024

// Note is a text that an event can have for its note, and so has any condition for
// its message.
func Note(text string) string { return Bytes(text, mostNote) }

// Bytes is a text of at most so many bytes: what is longer is cut between two
// characters, and ends in "…", for which most must have room. Bytes that are not
// UTF-8 are left out.
func Bytes(text string, most int) string {
	text = strings.ToValidUTF8(text, "")
	if len(text) <= most {
		return text
	}
	end := most - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

// Characters is a text of at most so many characters, as the API server counts
// them in fields of an object: what is longer ends in "…", which is one of them.
func Characters(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + ellipsis
}
