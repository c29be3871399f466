package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestFactsNameTestsThatExist holds docs/kubernetes.md to the tests here.
func TestFactsNameTestsThatExist(t *testing.T) {
	page, err := os.ReadFile("../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	defined := definedTests(t)
	named := map[string]bool{}
	for _, match := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(string(page), -1) {
		named[match[1]] = true
		if !defined[match[1]] {
			t.Errorf("docs/kubernetes.md names %s, which does not exist", match[1])
		}
	}
	for name := range defined {
		if !named[name] && name != t.Name() {
			t.Errorf("%s shows a fact that docs/kubernetes.md does not have", name)
		}
	}
}

// definedTests reads the sources, since most of them have a build tag.
func definedTests(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	api, err := filepath.Glob("resizeapi/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	defined := map[string]bool{}
	for _, file := range append(files, api...) {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`).FindAllSubmatch(source, -1) {
			defined[string(match[1])] = true
		}
	}
	return defined
}
