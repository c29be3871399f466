package v1alpha1

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/plimsoll-dev/plimsoll/test/golden"
)

// TestReasonsAreDocumented keeps docs/reasons.md equal to reasons.go, where
// every reason has a comment of the form "Name: meaning", and so the meanings
// that commands print.
func TestReasonsAreDocumented(t *testing.T) {
	document, meanings := reasonsDocument(t)
	golden.Check(t, "../../docs/reasons.md", document)
	golden.Check(t, "zz_generated.meanings.go", meanings)
}

func TestAnUnknownReasonHasNoMeaning(t *testing.T) {
	if got := Reason("Whim").Meaning(); got != "" {
		t.Errorf("%q", got)
	}
}

// reasonsDocument gives the page, and the Go file with the meanings.
func reasonsDocument(t *testing.T) (document, meanings string) {
	tree, err := parser.ParseFile(token.NewFileSet(), "reasons.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var doc strings.Builder
	doc.WriteString("# Reasons\n\nOne word says why: the same in conditions, events, metric labels and the command's output.\n" +
		"This page is written from `api/v1alpha1/reasons.go` by `make golden`.\n")
	var code strings.Builder
	code.WriteString("// Code generated from reasons.go by make golden. DO NOT EDIT.\n\npackage v1alpha1\n\nvar meanings = map[Reason]string{\n")
	seen := map[string]bool{}
	for _, decl := range tree.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		fmt.Fprintf(&doc, "\n## %s\n\n| reason | meaning |\n|---|---|\n", strings.TrimSuffix(oneLine(group.Doc), "."))
		for _, spec := range group.Specs {
			value := spec.(*ast.ValueSpec)
			name, err := strconv.Unquote(value.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			comment := oneLine(value.Doc)
			meaning, ok := strings.CutPrefix(comment, name+": ")
			if !ok || value.Names[0].Name != "Reason"+name || seen[name] {
				t.Errorf("%s = %q: the comment must start with %q, the constant be Reason%s, and the word be unique", value.Names[0].Name, name, name+": ", name)
			}
			seen[name] = true
			meaning = strings.ToUpper(meaning[:1]) + meaning[1:]
			fmt.Fprintf(&doc, "| `%s` | %s |\n", name, meaning)
			fmt.Fprintf(&code, "\t%s: %q,\n", value.Names[0].Name, meaning)
		}
	}
	code.WriteString("}\n")
	formatted, err := format.Source([]byte(code.String()))
	if err != nil {
		t.Fatal(err)
	}
	return doc.String(), string(formatted)
}

func oneLine(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }
