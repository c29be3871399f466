package main

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-tools/pkg/crd"
	"sigs.k8s.io/controller-tools/pkg/loader"
)

// maxQuantity is how long a quantity may be written. Rules parse quantities,
// and the API server refuses a rule whose input has no bound.
const maxQuantity = 32

const (
	labelKey   = "write a label's key, such as app or example.com/tier"
	labelValue = "write a label's value: up to 63 letters, digits, -, _ and ., that begin and end with a letter or digit"
)

// bound adds to the schemas of quantities and label selectors. The bounds of a
// selector are also in Validate, and a test holds the two together.
func bound() {
	amend("k8s.io/apimachinery/pkg/api/resource", map[string]change{"Quantity": boundQuantity})
	amend("k8s.io/apimachinery/pkg/apis/meta/v1", map[string]change{
		"LabelSelector":            boundSelector,
		"LabelSelectorRequirement": boundRequirement,
	})
}

type change func(*apiextensionsv1.JSONSchemaProps)

// amend changes schemas of a package's types, by name, after controller-gen has
// made them.
func amend(path string, changes map[string]change) {
	before, amending := crd.KnownPackages[path], false
	crd.KnownPackages[path] = func(p *crd.Parser, pkg *loader.Package) {
		if amending { // NeedSchemaFor asks for the package again.
			return
		}
		amending = true
		before(p, pkg)
		for name, change := range changes {
			id := crd.TypeIdent{Package: pkg, Name: name}
			p.NeedSchemaFor(id)
			s := p.Schemata[id]
			change(&s)
			p.Schemata[id] = s
		}
		amending = false
	}
}

func boundQuantity(s *apiextensionsv1.JSONSchemaProps) {
	s.MaxLength = new(int64(maxQuantity))
}

func boundSelector(s *apiextensionsv1.JSONSchemaProps) {
	labels := s.Properties["matchLabels"]
	labels.MaxProperties = new(int64(64))
	labels.AdditionalProperties.Schema.MaxLength = new(int64(63))
	labels.XValidations = apiextensionsv1.ValidationRules{
		{Rule: "self.all(k, !format.qualifiedName().validate(k).hasValue())", Message: labelKey},
		{Rule: "self.all(k, !format.labelValue().validate(self[k]).hasValue())", Message: labelValue},
	}
	s.Properties["matchLabels"] = labels

	expressions := s.Properties["matchExpressions"]
	expressions.MaxItems = new(int64(32))
	s.Properties["matchExpressions"] = expressions
}

func boundRequirement(s *apiextensionsv1.JSONSchemaProps) {
	key := s.Properties["key"]
	key.MinLength, key.MaxLength = new(int64(1)), new(int64(317))
	key.XValidations = apiextensionsv1.ValidationRules{
		{Rule: "!format.qualifiedName().validate(self).hasValue()", Message: labelKey},
	}
	s.Properties["key"] = key

	operator := s.Properties["operator"]
	for _, name := range []string{"In", "NotIn", "Exists", "DoesNotExist"} {
		operator.Enum = append(operator.Enum, apiextensionsv1.JSON{Raw: []byte(`"` + name + `"`)})
	}
	s.Properties["operator"] = operator

	values := s.Properties["values"]
	values.MaxItems = new(int64(64))
	values.Items.Schema.MaxLength = new(int64(63))
	values.Items.Schema.XValidations = apiextensionsv1.ValidationRules{
		{Rule: "!format.labelValue().validate(self).hasValue()", Message: labelValue},
	}
	s.Properties["values"] = values

	s.XValidations = slices.Concat(s.XValidations, apiextensionsv1.ValidationRules{
		{
			Rule:      "!(self.operator in ['In', 'NotIn']) || has(self.values) && self.values.size() > 0",
			Message:   "operators In and NotIn need one or more values",
			FieldPath: ".values",
		},
		{
			Rule:      "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || self.values.size() == 0",
			Message:   "operators Exists and DoesNotExist take no values; leave them out",
			FieldPath: ".values",
		},
	})
}
