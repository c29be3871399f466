// Package crd installs the custom resources of the API in a cluster for tests,
// and checks them there: what the manifests say is read by a real API server
// before it is read by a user.
package crd

import (
	"context"
	"fmt"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	manifests "github.com/plimsoll-dev/plimsoll/config/crd"
)

// Install creates the custom resources and returns when the API server serves
// them. It fails the test where one is refused. Nothing is removed at the end:
// the cluster is the test's own.
func Install(t testing.TB, config *rest.Config) {
	t.Helper()
	if err := installAll(t.Context(), config); err != nil {
		t.Fatal(err)
	}
}

func installAll(ctx context.Context, config *rest.Config) error {
	crds, err := manifests.Manifests()
	if err != nil {
		return err
	}
	for _, crd := range crds {
		if err := install(ctx, config, crd); err != nil {
			return fmt.Errorf("installing %s: %w", crd.Name, err)
		}
	}
	return nil
}

func install(ctx context.Context, config *rest.Config, crd *apiextensionsv1.CustomResourceDefinition) error {
	all, err := apiextensions.NewForConfig(config)
	if err != nil {
		return err
	}
	client := all.CustomResourceDefinitions()
	created, err := client.Create(ctx, crd, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	one := fields.OneTermEqualSelector("metadata.name", crd.Name).String()
	watcher := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		o.FieldSelector = one
		return client.Watch(ctx, o)
	}}
	if _, err := watchtools.Until(ctx, created.ResourceVersion, watcher, established); err != nil {
		return fmt.Errorf("waiting until it is established: %w", err)
	}
	return served(ctx, config, crd)
}

func established(e watch.Event) (bool, error) {
	crd, ok := e.Object.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return false, fmt.Errorf("a %s event with %T", e.Type, e.Object)
	}
	for _, c := range crd.Status.Conditions {
		switch {
		case c.Status == apiextensionsv1.ConditionFalse && c.Type == apiextensionsv1.NamesAccepted,
			c.Status == apiextensionsv1.ConditionTrue && c.Type == apiextensionsv1.NonStructuralSchema:
			return false, fmt.Errorf("%s is %s: %s", c.Type, c.Status, c.Message)
		case c.Status == apiextensionsv1.ConditionTrue && c.Type == apiextensionsv1.Established:
			return true, nil
		}
	}
	return false, nil
}

// served waits until the objects can be listed. The API server's own cache of
// definitions lags the condition by some milliseconds, and says so to nobody.
func served(ctx context.Context, config *rest.Config, crd *apiextensionsv1.CustomResourceDefinition) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	resource := schema.GroupVersionResource{Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name, Resource: crd.Spec.Names.Plural}
	err = wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("waiting until %s are served: %w", crd.Spec.Names.Plural, err)
	}
	return nil
}
