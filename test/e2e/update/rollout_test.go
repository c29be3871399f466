//go:build e2e

package update

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rollout has the deployment make new pods, and returns its generation then.
func (s *service) rollout(t *testing.T) int64 {
	t.Helper()
	before := s.deployed.DeepCopy()
	s.deployed.Spec.Template.Annotations = map[string]string{"rollout": "2"}
	if err := s.Client.Patch(t.Context(), s.deployed, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	return s.deployed.Generation
}

// replaced says whether the service's one pod is another one.
func (s *service) replaced(old *corev1.Pod) func(context.Context) error {
	return func(ctx context.Context) error {
		var list corev1.PodList
		if err := s.Client.List(ctx, &list, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		if len(list.Items) != 1 || list.Items[0].UID == old.UID {
			return fmt.Errorf("there are %d pods", len(list.Items))
		}
		return nil
	}
}

func (s *service) wantTemplateUntouched(t *testing.T, generation int64) {
	t.Helper()
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(s.deployed), s.deployed); err != nil {
		t.Fatal(err)
	}
	if s.deployed.Generation != generation {
		t.Errorf("the deployment is of generation %d, and was of %d: somebody has written to it", s.deployed.Generation, generation)
	}
}
