package verdict

import (
	"path"
	"strings"
	"unicode"
)

// splitWords cuts a text at white space, as a shell or the JVM's launcher does
// with quotes. It knows no escapes but a backslash before the next character.
func splitWords(s string) []string {
	var (
		words   []string
		word    strings.Builder
		inWord  bool
		quote   rune
		escaped bool
	)
	for _, r := range s {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, inWord = true, true
		case quote != 0:
			if r == quote {
				quote = 0
				continue
			}
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, inWord = r, true
		case unicode.IsSpace(r):
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words
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
	var (
		all      []invocation
		current  invocation
		expected = true
		skip     int
	)
	for _, word := range unwrapShell(argv, expandShell) {
		bare := strings.TrimRight(word, ";")
		switch {
		case operators[word]:
			expected = true
			continue
		case !expected, strings.HasPrefix(bare, "-"):
			current.args = append(current.args, bare)
		case skip > 0:
			skip--
		case bare == "" || isAssignment(bare):
		case isWrapper(bare):
			skip = wrappers[path.Base(bare)]
		default:
			if current.program != "" || len(current.args) > 0 {
				all = append(all, current)
			}
			current = invocation{program: path.Base(bare)}
			expected = false
		}
		if bare != word {
			expected = true
		}
	}
	if current.program != "" || len(current.args) > 0 {
		all = append(all, current)
	}
	return all
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
