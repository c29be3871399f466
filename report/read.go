package report

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-dev/plimsoll/sizing"
)

// mostFaults is how many faults of a list are named.
const mostFaults = 10

// Read reads a list that was written as JSON or YAML, and refuses whatever is not
// exactly that: unknown and duplicate fields, amounts that are none, containers
// without a name or with the same one. All faults are named at once, the first
// ten of them.
func Read(text []byte) (List, error) {
	var list List
	if len(bytes.TrimSpace(text)) == 0 {
		return list, errors.New("the file is empty")
	}
	if text = bytes.TrimSpace(text); text[0] != '{' {
		converted, err := yaml.YAMLToJSONStrict(text)
		if err != nil {
			return list, fmt.Errorf("neither JSON nor YAML: %w", err)
		}
		text = converted
	}
	strict, err := kjson.UnmarshalStrict(text, &list)
	if err != nil {
		return list, fmt.Errorf("no recommendations as plimsoll recommend -o json writes them: %w", err)
	}
	if list.APIVersion != APIVersion || list.Kind != KindList {
		return list, fmt.Errorf("%s of %s, and not a %s of %s, as plimsoll recommend -o json writes it",
			orWord(list.Kind, "no kind"), orWord(list.APIVersion, "no apiVersion"), KindList, APIVersion)
	}
	faults := slices.Concat(strict, list.faults())
	if more := len(faults) - mostFaults; more > 0 {
		faults = append(faults[:mostFaults], fmt.Errorf("and %d more", more))
	}
	return list, errors.Join(faults...)
}

func orWord(text, empty string) string {
	if text == "" {
		return empty
	}
	return text
}

// faults are what is wrong with the items.
func (l *List) faults() []error {
	var faults []error
	seen := map[itemID]bool{}
	for n := range l.Items {
		i := &l.Items[n]
		place := fmt.Sprintf("items[%d]", n)
		if i.Kind == "" || i.Name == "" || i.Container == "" {
			faults = append(faults, fmt.Errorf("%s: kind, name and container must not be empty", place))
			continue
		}
		if seen[i.id()] {
			faults = append(faults, fmt.Errorf("%s: %s is there twice", place, i.id()))
		}
		seen[i.id()] = true
		if _, err := ParseSeverity(string(i.Severity)); err != nil {
			faults = append(faults, fmt.Errorf("%s.severity: %w", place, err))
		}
		faults = append(faults, i.amountFaults(place)...)
	}
	return faults
}

func (i *Item) amountFaults(place string) []error {
	var faults []error
	for _, group := range []struct {
		name    string
		amounts *Amounts
	}{
		{"current.requests", &i.Current.Requests},
		{"current.limits", &i.Current.Limits},
		{"target.requests", &i.Target.Requests},
		{"target.limits", &i.Target.Limits},
	} {
		for _, r := range sizing.Resources {
			text := *group.amounts.For(r)
			if text == nil {
				continue
			}
			if _, err := resource.ParseQuantity(*text); err != nil {
				path := strings.Join([]string{place, group.name, string(r)}, ".")
				faults = append(faults, fmt.Errorf("%s: %q is no quantity", path, *text))
			}
		}
	}
	return faults
}
