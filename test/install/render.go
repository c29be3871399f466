// Package install renders and applies the manifests with which Plimsoll is
// installed, by the libraries behind kubectl and helm. It is a module of its own, so
// that neither enters the product's dependencies.
package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Objects are manifests in the order in which they are applied.
type Objects []*unstructured.Unstructured

// Kustomize is what `kubectl kustomize dir` prints.
func Kustomize(dir string) (Objects, error) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", dir, err)
	}
	text, err := built.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", dir, err)
	}
	return Parse(string(text))
}

// Chart is what `helm template` prints of the chart in dir, for a release of the name
// plimsoll in the namespace. Values that the schema refuses are an error.
func Chart(ctx context.Context, dir, namespace string, values map[string]any) (Objects, error) {
	files, err := renderChart(ctx, dir, namespace, values)
	if err != nil {
		return nil, fmt.Errorf("rendering the chart %s: %w", dir, err)
	}
	var all Objects
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, "NOTES.txt") {
			continue
		}
		objects, err := Parse(files[name])
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

func renderChart(ctx context.Context, dir, namespace string, values map[string]any) (map[string]string, error) {
	chart, err := loader.LoadDir(dir)
	if err != nil {
		return nil, err
	}
	release := common.ReleaseOptions{Name: "plimsoll", Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, values, release, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.RenderWithContext(ctx, chart, all)
}

// Parse reads manifests, JSON or YAML, one document or many.
func Parse(text string) (Objects, error) {
	var all Objects
	for documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		var object map[string]any
		err := documents.Decode(&object)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if len(object) > 0 {
			all = append(all, &unstructured.Unstructured{Object: object})
		}
	}
}

// Apply is `kubectl apply --server-side`, refusing fields that the API server does not
// know. All objects are tried; the error names each that was refused.
func Apply(ctx context.Context, config *rest.Config, objects Objects) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	discover, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discover))
	var errs []error
	for _, o := range objects {
		kind := o.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		body, err := o.MarshalJSON()
		if err != nil {
			return err
		}
		force := true
		_, err = client.Resource(mapping.Resource).Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.ApplyPatchType, body,
			metav1.PatchOptions{FieldManager: "install", Force: &force, FieldValidation: metav1.FieldValidationStrict})
		if err != nil {
			errs = append(errs, fmt.Errorf("applying %s %s: %w", kind.Kind, o.GetName(), err))
		}
	}
	return errors.Join(errs...)
}
