package verdict

import (
	"path"
	"strings"
	"unicode"
)

// splitWords cuts a text at white space, as a shell or the JVM's launcher does
// with quotes. It knows no escapes but a backslash before the next character.
func splitWords(s string) []string {
	var w splitter
	for _, r := range s {
		w.add(r)
	}
	w.end()
	return w.words
}

// splitter is the state of splitWords between two characters.
type splitter struct {
	words   []string
	word    strings.Builder
	inWord  bool
	escaped bool
	quote   rune
}

func (w *splitter) add(r rune) {
	switch {
	case w.escaped:
		w.word.WriteRune(r)
		w.escaped = false
	case r == '\\' && w.quote != '\'':
		w.escaped, w.inWord = true, true
	case w.quote != 0 && r == w.quote:
		w.quote = 0
	case w.quote == 0 && (r == '"' || r == '\''):
		w.quote, w.inWord = r, true
	case w.quote == 0 && unicode.IsSpace(r):
		w.end()
	default:
		w.word.WriteRune(r)
		w.inWord = true
	}
}

// end closes the word that is open, if any; quotes make an empty word too.
func (w *splitter) end() {
	if w.inWord {
		w.words = append(w.words, w.word.String())
		w.word.Reset()
		w.inWord = false
	}
}

// shells run the word after -c as a script.
var shells = map[string]bool{"sh": true, "bash": true, "ash": true, "dash": true, "zsh": true, "ksh": true}

// wrappers start the program that is named after them and their options; the
// number is how many words of their own come before it.
var wrappers = map[string]int{
	"exec": 0, "env": 0, "nice": 0, "nohup": 0, "time": 0, "tini": 0, "dumb-init": 0, "catatonit": 0, "sudo": 0,
	"gosu": 1, "su-exec": 1, "chroot": 1, "timeout": 1, "then": 0, "do": 0,
	"docker-entrypoint.sh": 0, "entrypoint.sh": 0,
}

// operators end a command in a shell's script.
var operators = map[string]bool{";": true, "&&": true, "||": true, "|": true, "&": true, "{": true, "(": true}

// invocation is a program and the words after it, up to the next one.
type invocation struct {
	program string // base name of the path
	args    []string
}

// invocations takes a command line apart. Words before the first program, such
// as flags for the image's own entrypoint, come with an empty program.
// expandShell replaces a shell's variables in a script.
func invocations(argv []string, expandShell func(string) string) []invocation {
	p := parser{expected: true}
	for _, word := range unwrapShell(argv, expandShell) {
		if operators[word] {
			p.expected = true
			continue
		}
		bare := strings.TrimRight(word, ";")
		p.add(bare)
		if bare != word {
			p.expected = true
		}
	}
	p.end()
	return p.all
}

// parser is the state of invocations between two words.
type parser struct {
	all     []invocation
	current invocation
	// expected says that the next word may be a program, once skip words have
	// gone by.
	expected bool
	skip     int
}

func (p *parser) add(word string) {
	switch {
	case !p.expected, strings.HasPrefix(word, "-"):
		p.current.args = append(p.current.args, word)
	case p.skip > 0:
		p.skip--
	case word == "", isAssignment(word):
	case isWrapper(word):
		p.skip = wrappers[path.Base(word)]
	default:
		p.end()
		p.current = invocation{program: path.Base(word)}
		p.expected = false
	}
}

func (p *parser) end() {
	if p.current.program != "" || len(p.current.args) > 0 {
		p.all = append(p.all, p.current)
	}
}

// unwrapShell replaces `sh -c script` by the words of the script.
func unwrapShell(argv []string, expandShell func(string) string) []string {
	var words []string
	for i := 0; i < len(argv); i++ {
		if !shells[path.Base(argv[i])] {
			words = append(words, argv[i])
			continue
		}
		for i+1 < len(argv) && strings.HasPrefix(argv[i+1], "-") {
			i++
			if strings.HasSuffix(argv[i], "c") && i+1 < len(argv) {
				i++
				words = append(words, splitWords(expandShell(argv[i]))...)
				break
			}
		}
	}
	return words
}

func isWrapper(word string) bool {
	_, ok := wrappers[path.Base(word)]
	return ok
}

func isAssignment(word string) bool {
	name, _, found := strings.Cut(word, "=")
	return found && name != "" && nameLength(name) == len(name)
}

// nameLength is the length of the variable name that s begins with.
func nameLength(s string) int {
	for i := range len(s) {
		if c := s[i] | 0x20; (c < 'a' || c > 'z') && s[i] != '_' && (s[i] < '0' || s[i] > '9' || i == 0) {
			return i
		}
	}
	return len(s)
}
