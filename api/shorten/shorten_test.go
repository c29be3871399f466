package shorten

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTextsAreCutBetweenCharacters(t *testing.T) {
	for name, tc := range map[string]struct{ got, want string }{
		"what fits stays":                             {Bytes("fits", 4), "fits"},
		"the sign of the cut is among the bytes":      {Bytes("too long", 7), "too …"},
		"a character is whole or gone":                {Bytes("a→→→", 8), "a→…"},
		"nothing but the sign has room":               {Bytes("→→→", 3), "…"},
		"what is no UTF-8 is left out":                {Bytes("a\xffb", 10), "ab"},
		"characters are counted, and not their bytes": {Characters("→→→", 3), "→→→"},
		"the sign of the cut is a character":          {Characters("→→→→", 3), "→→…"},
		"no characters stay none":                     {Characters("", 1), ""},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: got %q, want %q", name, tc.got, tc.want)
		}
	}
}

func TestANoteFillsWhatAnEventHasRoomFor(t *testing.T) {
	for _, text := range []string{strings.Repeat("x", 2000), strings.Repeat("→", 2000)} {
		if got := Note(text); len(got) > 1024 || len(got) < 1024-utf8.UTFMax || !strings.HasSuffix(got, "…") {
			t.Errorf("the note has %d bytes", len(got))
		}
	}
}

func FuzzBytes(f *testing.F) {
	f.Add("a→b", 4)
	f.Fuzz(func(t *testing.T, text string, most int) {
		if most < len(ellipsis) {
			return
		}
		if got := Bytes(text, most); len(got) > most || !utf8.ValidString(got) || utf8.ValidString(text) && len(text) <= most && got != text {
			t.Errorf("Bytes(%q, %d) is %q", text, most, got)
		}
	})
}
