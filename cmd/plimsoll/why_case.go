package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/recommender/verdict"
	"github.com/plimsoll-dev/plimsoll/updater"
)

// saveCase writes what a decision depends on, without what may be secret and
// nothing depends on.
func saveCase(w io.Writer, in updater.Input) error {
	in.Pod, in.Space = withoutSecrets(in.Pod), spaceWithoutSecrets(in.Space)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(in)
}

// decisive are the annotations that decisions depend on. What else there is can be
// anybody's, such as kubectl's note of the last manifest with all its values.
var decisive = []string{
	updater.ResizeAnnotation, updater.DriftAnnotation, updater.InducedRestartsAnnotation,
	corev1.MirrorPodAnnotationKey, updater.ConfigSourceAnnotation,
}

// withoutSecrets is the pod without values of environment variables that say
// nothing of the runtime, and without annotations that nothing depends on.
func withoutSecrets(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	for i := range pod.ManagedFields {
		pod.ManagedFields[i].FieldsV1 = nil // Who wrote last, and when, is all that counts.
	}
	maps.DeleteFunc(pod.Annotations, func(key, _ string) bool { return !slices.Contains(decisive, key) })
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			redact(&containers[i])
		}
	}
	return pod
}

// spaceWithoutSecrets is what bounds a namespace's pods, without annotations and
// without who wrote it.
func spaceWithoutSecrets(s updater.Space) updater.Space {
	s.Quotas, s.LimitRanges = slices.Clone(s.Quotas), slices.Clone(s.LimitRanges)
	for i := range s.Quotas {
		s.Quotas[i].Annotations, s.Quotas[i].ManagedFields = nil, nil
	}
	for i := range s.LimitRanges {
		s.LimitRanges[i].Annotations, s.LimitRanges[i].ManagedFields = nil, nil
	}
	return s
}

// redact empties each value without which the runtime looks the same.
func redact(c *corev1.Container) {
	said := verdict.Of(*c, verdict.Input{})
	for i := range c.Env {
		value := c.Env[i].Value
		c.Env[i].Value = ""
		if !reflect.DeepEqual(said, verdict.Of(*c, verdict.Input{})) {
			c.Env[i].Value = value
		}
	}
}

// loadCase reads what saveCase wrote.
func loadCase(path string) (in updater.Input, err error) {
	wrong := func(err error) error {
		return fmt.Errorf("--load: %s is not whole, or not what --save of this version writes: %w", path, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return in, fmt.Errorf("--load: %w", err)
	}
	defer f.Close()
	decoder := json.NewDecoder(f)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&in); err != nil {
		return in, wrong(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return in, wrong(errors.New("there is something after the case"))
	}
	if in.Pod == nil || in.Now.IsZero() {
		return in, wrong(errors.New("it has no pod, or no time"))
	}
	return in, nil
}
