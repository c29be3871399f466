// Program apilint checks packages of API types against the conventions of the
// Kubernetes API: kube-api-linter, without the golangci-lint around it.
package main

import (
	"fmt"
	"os"
	"slices"

	"golang.org/x/tools/go/analysis/multichecker"
	"sigs.k8s.io/kube-api-linter/pkg/analysis/registry"
	"sigs.k8s.io/kube-api-linter/pkg/config"
	_ "sigs.k8s.io/kube-api-linter/pkg/registration"
)

// argued are rules that the API departs from; docs/decisions.md says why.
var argued = []string{"minlength", "nonpointerstructs", "optionalfields", "requiredfields"}

// idle are rules that do nothing until they are given something to do.
var idle = []string{"conflictingmarkers", "dependenttags", "forbiddenmarkers", "namingconventions", "preferredmarkers"}

func main() {
	linters := config.Linters{Enable: []string{config.Wildcard}, Disable: slices.Concat(argued, idle)}
	analyzers, err := registry.DefaultRegistry().InitializeLinters(linters, config.LintersConfig{
		// Tags for protobuf and strategic merge mean nothing in a custom resource.
		"conditions": map[string]any{"useProtobuf": "Forbid", "usePatchStrategy": "Forbid"},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	multichecker.Main(analyzers...)
}
