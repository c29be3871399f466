package workload

import "testing"

func TestBatchIsWhatEndsByItself(t *testing.T) {
	pod := func(restart string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {" + restart + "containers: [{name: main}]}}"
	}
	for name, tc := range map[string]struct {
		in   string
		want bool
	}{
		"a Deployment":                     {deployment, false},
		"a Job":                            {"{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: " + pods("main") + "}", true},
		"a CronJob":                        {"{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {jobTemplate: {spec: " + pods("main") + "}}}", true},
		"a pod":                            {pod(""), false},
		"a pod that is always there":       {pod("restartPolicy: Always, "), false},
		"a pod that runs once":             {pod("restartPolicy: Never, "), true},
		"a pod that runs until it is done": {pod("restartPolicy: OnFailure, "), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mustRead(t, tc.in).Targets[0].Batch(); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
