package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is group and version of the API.
var GroupVersion = schema.GroupVersion{Group: Group, Version: Version}

// AddToScheme makes the kinds of the API known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&VerticalPolicy{}, &VerticalPolicyList{},
		&ClusterVerticalPolicy{}, &ClusterVerticalPolicyList{},
		&VerticalRecommendation{}, &VerticalRecommendationList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
