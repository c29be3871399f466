// Program generate writes what follows from the types in api/v1alpha1: their
// deepcopy methods and the manifests of the custom resources.
//
// It is controller-gen, with one thing added: types that are not ours, and so
// cannot carry our markers, get bounds and rules here.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-tools/pkg/crd"
	"sigs.k8s.io/controller-tools/pkg/deepcopy"
	"sigs.k8s.io/controller-tools/pkg/genall"
)

const (
	types     = "api/v1alpha1"
	manifests = "config/crd"
)

func main() {
	root := flag.String("root", "../../..", "the repository")
	out := flag.String("out", "", "where to write, as the repository's folders; default: into the repository")
	flag.Parse()
	if err := generate(*root, *out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func generate(root, out string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	if out == "" {
		out = root
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	// Packages are found from the module that the working directory is in.
	if err := os.Chdir(root); err != nil {
		return err
	}
	bound()

	var code, definitions genall.Generator = deepcopy.Generator{}, crd.Generator{OmitToolVersion: new(true)}
	run, err := genall.Generators{&code, &definitions}.ForRoots("./" + types)
	if err != nil {
		return fmt.Errorf("loading %s: %w", types, err)
	}
	run.OutputRules = genall.OutputRules{ByGenerator: map[*genall.Generator]genall.OutputRule{
		&code:        genall.OutputToDirectory(filepath.Join(out, types)),
		&definitions: genall.OutputToDirectory(filepath.Join(out, manifests)),
	}}
	if run.Run() {
		return errors.New("the faults above are in the types or their markers")
	}
	return nil
}
