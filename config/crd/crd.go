// Package crd holds the manifests of the custom resources, as `make generate`
// writes them from package api/v1alpha1.
package crd

import (
	"embed"
	"fmt"
	"io/fs"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed autoscaling.plimsoll.dev_*.yaml
var files embed.FS

// Manifests returns the definitions of all kinds of the API, in the order of
// their names. The caller may change them. An error means that a manifest does
// not parse.
func Manifests() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			return nil, fmt.Errorf("parsing %s: %w", name, err)
		}
		crds = append(crds, &crd)
	}
	return crds, nil
}
