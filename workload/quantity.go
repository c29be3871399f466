package workload

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// badQuantity looks for what the decoder only says exists somewhere.
func (o object) badQuantity() (path, value string, ok bool) {
	var v any
	if err := json.Unmarshal(o.raw, &v); err != nil {
		return "", "", false
	}
	isPolicy := group(o.apiVersion) == v1alpha1.Group
	return searchQuantity(nil, v, func(key, parent string) bool {
		if isPolicy {
			return slices.Contains(quantityFields, key)
		}
		return slices.Contains(quantityMaps, parent)
	})
}

// searchQuantity returns the first malformed quantity below v among the fields
// that isQuantity picks by their own name and that of the field around them.
func searchQuantity(at *field.Path, v any, isQuantity func(key, parent string) bool) (path, value string, ok bool) {
	switch v := v.(type) {
	case map[string]any:
		parent := at.String()
		parent = parent[strings.LastIndexByte(parent, '.')+1:]
		for _, key := range slices.Sorted(maps.Keys(v)) {
			text, isText := v[key].(string)
			if _, err := resource.ParseQuantity(text); isText && err != nil && isQuantity(key, parent) {
				return child(at, key).String(), strconv.Quote(text), true
			}
			if path, value, ok := searchQuantity(child(at, key), v[key], isQuantity); ok {
				return path, value, true
			}
		}
	case []any:
		for i, item := range v {
			if path, value, ok := searchQuantity(at.Index(i), item, isQuantity); ok {
				return path, value, true
			}
		}
	}
	return "", "", false
}

func child(at *field.Path, key string) *field.Path {
	if at == nil {
		return field.NewPath(key)
	}
	return at.Child(key)
}
