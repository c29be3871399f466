package crd

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/plimsoll-dev/plimsoll/test/golden"
)

const introduction = `# API

Group %s, version %s. This page is written from the manifests in [config/crd](../config/crd) by ` + "`make golden`" + `;
` + "`kubectl explain`" + ` says the same. [config/samples](../config/samples) has a policy for every use, and
[reference.yaml](../config/samples/reference.yaml) every field with its default.
`

func TestTheReferencePage(t *testing.T) {
	crds, err := Manifests()
	if err != nil {
		t.Fatal(err)
	}
	// The policies first, since that is what a user writes.
	order := []string{"VerticalPolicy", "ClusterVerticalPolicy", "VerticalRecommendation"}
	slices.SortFunc(crds, func(a, b *apiextensionsv1.CustomResourceDefinition) int {
		return slices.Index(order, a.Spec.Names.Kind) - slices.Index(order, b.Spec.Names.Kind)
	})
	var page strings.Builder
	fmt.Fprintf(&page, introduction, crds[0].Spec.Group, crds[0].Spec.Versions[0].Name)
	known := map[string]apiextensionsv1.JSONSchemaProps{}
	for _, crd := range crds {
		writeKind(&page, crd, known)
	}
	golden.Check(t, root+"/docs/api.md", page.String())
}

// writeKind describes a kind. Fields that an earlier kind has alike are left
// out.
func writeKind(page *strings.Builder, crd *apiextensionsv1.CustomResourceDefinition, known map[string]apiextensionsv1.JSONSchemaProps) {
	names, version := crd.Spec.Names, crd.Spec.Versions[0]
	schema := version.Schema.OpenAPIV3Schema
	fmt.Fprintf(page, "\n## %s\n\n%s\n\n", names.Kind, schema.Description)
	fmt.Fprintf(page, "Scope %s; `kubectl get %s`, `%s`, or with all others `%s`.\n\n",
		crd.Spec.Scope, names.Plural, strings.Join(names.ShortNames, "`, `"), strings.Join(names.Categories, "`, `"))

	page.WriteString("| column | shows |\n|---|---|\n")
	for _, c := range version.AdditionalPrinterColumns {
		wide := ""
		if c.Priority > 0 {
			wide = " (`-o wide`)"
		}
		if c.Description != "" {
			fmt.Fprintf(page, "| %s%s | %s |\n", c.Name, wide, c.Description)
		}
	}

	var same int
	page.WriteString("\n| field | value | |\n|---|---|---|\n")
	for _, top := range []string{"spec", "status"} {
		s := schema.Properties[top]
		fieldsOf(top, &s, slices.Contains(schema.Required, top), func(path string, s *apiextensionsv1.JSONSchemaProps, required bool) {
			if before, ok := known[path]; ok && reflect.DeepEqual(before, *s) {
				same++
				return
			}
			known[path] = *s
			fmt.Fprintf(page, "| `%s` | %s | %s |\n", path, cell(valueOf(s, required)), cell(textOf(s)))
		})
	}
	if same > 0 {
		page.WriteString("\nAll other fields are those of the kinds above.\n")
	}
}

// fieldsOf visits a field and all below it, in the order of their names.
func fieldsOf(path string, s *apiextensionsv1.JSONSchemaProps, required bool, visit func(string, *apiextensionsv1.JSONSchemaProps, bool)) {
	visit(path, s, required)
	if s.Items != nil {
		s, path = s.Items.Schema, path+"[]"
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		fieldsOf(path+"."+name, &p, slices.Contains(s.Required, name), visit)
	}
}

// valueOf says what may be written.
func valueOf(s *apiextensionsv1.JSONSchemaProps, required bool) string {
	parts := []string{typeOf(s)}
	if required {
		parts = append(parts, "required")
	}
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		parts = append(parts, fmt.Sprintf("%.0f to %.0f", *s.Minimum, *s.Maximum))
	case s.Minimum != nil:
		parts = append(parts, fmt.Sprintf("%.0f or more", *s.Minimum))
	}
	if s.MaxItems != nil {
		parts = append(parts, fmt.Sprintf("at most %d", *s.MaxItems))
	}
	return strings.Join(parts, ", ")
}

func typeOf(s *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case len(s.Enum) > 0:
		var words []string
		for _, e := range s.Enum {
			words = append(words, "`"+strings.Trim(string(e.Raw), `"`)+"`")
		}
		return strings.Join(words, ", ")
	case s.XIntOrString:
		return "quantity"
	case s.Format == "date-time":
		return "time"
	case s.Items != nil && s.Items.Schema.Type == "object":
		return "list of groups"
	case s.Items != nil:
		return "list of " + typeOf(s.Items.Schema)
	case s.AdditionalProperties != nil:
		return "map of " + typeOf(s.AdditionalProperties.Schema)
	case s.Type == "object":
		return "group"
	}
	return s.Type
}

// textOf is the description, and what its rules say.
func textOf(s *apiextensionsv1.JSONSchemaProps) string {
	text := s.Description
	for _, rule := range s.XValidations {
		if field := strings.TrimPrefix(rule.FieldPath, "."); field != "" {
			text += fmt.Sprintf(" `%s`: %s.", field, rule.Message)
		} else {
			text += fmt.Sprintf(" Rule: %s.", rule.Message)
		}
	}
	return text
}

// cell is text as a table takes it.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}
