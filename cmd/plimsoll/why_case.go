package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/recommender/verdict"
	"github.com/plimsoll-dev/plimsoll/updater"
)

// saveCase writes what a decision depends on, without what may be secret and
// nothing depends on.
func saveCase(w io.Writer, in updater.Input) error {
	in.Pod = withoutSecrets(in.Pod)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(in)
}

// withoutSecrets is the pod without values of environment variables that say
// nothing of the runtime, and without kubectl's note of the last manifest, which
// holds them as well.
func withoutSecrets(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	for i := range pod.ManagedFields {
		pod.ManagedFields[i].FieldsV1 = nil // Who wrote last, and when, is all that counts.
	}
	delete(pod.Annotations, corev1.LastAppliedConfigAnnotation)
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			redact(&containers[i])
		}
	}
	return pod
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
