package history

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const shop = "shop"

func key(kind, name string) WorkloadKey { return WorkloadKey{Namespace: shop, Kind: kind, Name: name} }

// keys reads "Deployment web" and the like.
func keys(lines ...string) []WorkloadKey {
	var all []WorkloadKey
	for _, line := range lines {
		kind, name, _ := strings.Cut(line, " ")
		all = append(all, key(kind, name))
	}
	return all
}

func checkOwner(t *testing.T, o *Owners, pod, want string) {
	t.Helper()
	got := "nobody"
	if i, ok := o.Of(shop, pod); ok {
		got = o.workloads[i].Kind + " " + o.workloads[i].Name
	}
	if got != want {
		t.Errorf("pod %s belongs to %s, want %s", pod, got, want)
	}
}

func TestOwnersByName(t *testing.T) {
	long50 := strings.Repeat("a", 50)
	long57 := strings.Repeat("a", 57)
	long70 := strings.Repeat("a", 70)
	tests := map[string]struct {
		workloads []WorkloadKey
		want      map[string]string // owner by pod
	}{
		"B10: pods of earlier ReplicaSets count, those of a longer name do not": {
			workloads: keys("Deployment web"),
			want: map[string]string{
				"web-aaa-x1":     "Deployment web",
				"web-bbb-y1":     "Deployment web",
				"web-api-ccc-z1": "nobody",
			},
		},
		"B10: the longer name gets its own": {
			workloads: keys("Deployment web", "Deployment web-api"),
			want: map[string]string{
				"web-aaa-x1":     "Deployment web",
				"web-api-ccc-z1": "Deployment web-api",
			},
		},
		"a Deployment's pods have a hash and a suffix": {
			workloads: keys("Deployment web"),
			want: map[string]string{
				"web-5d4f9c7b8-x7k2p":   "Deployment web",
				"web-6d5f-x7k2p":        "Deployment web",
				"web-7xk2m9pq-x7k2p":    "Deployment web",
				"web":                   "nobody",
				"web-":                  "nobody",
				"web--x7k2p":            "nobody",
				"web-x7k2p":             "nobody",
				"web2-5d4f9c7b8-x7k2p":  "nobody",
				"my-web-5d4f9c-x7k2p":   "nobody",
				"web-5d4f9c7b8-x7k2p-a": "nobody",
			},
		},
		"what looks like the pod of something else is left, though nothing else is known": {
			workloads: keys("Deployment web", "Rollout shop"),
			want: map[string]string{
				"web-api-x7k2p":      "nobody", // a DaemonSet web-api
				"web-v2-x7k2p":       "nobody", // a DaemonSet web-v2
				"web-db-x7k2p":       "nobody", // a DaemonSet web-db
				"web-db-0":           "nobody", // a StatefulSet web-db
				"web-29012345-x7k2p": "nobody", // a CronJob web
				"shop-api-x7k2p":     "nobody",
			},
		},
		"names by hand are taken where they look like nothing else": {
			workloads: keys("Deployment web", "DaemonSet agent", "CronJob report", "Job load"),
			want: map[string]string{
				"web-abc-a":       "Deployment web",
				"agent-a":         "DaemonSet agent",
				"agent-node1":     "DaemonSet agent",
				"report-1-a":      "CronJob report",
				"load-0-a":        "Job load",
				"agent-something": "nobody",
			},
		},
		"a StatefulSet's pods have an ordinal": {
			workloads: keys("StatefulSet db"),
			want: map[string]string{
				"db-0":      "StatefulSet db",
				"db-12":     "StatefulSet db",
				"db-01":     "nobody",
				"db-x":      "nobody",
				"db-1-2":    "nobody",
				"db-main-0": "nobody",
			},
		},
		"DaemonSets, ReplicaSets and Jobs have a suffix only": {
			workloads: keys("DaemonSet agent", "ReplicaSet old", "Job load", "ReplicationController rc"),
			want: map[string]string{
				"agent-x7k2p":      "DaemonSet agent",
				"old-x7k2p":        "ReplicaSet old",
				"load-x7k2p":       "Job load",
				"load-3-x7k2p":     "Job load", // an Indexed Job
				"rc-x7k2p":         "ReplicationController rc",
				"agent-b7f-x7k2p":  "nobody",
				"load-03-x7k2p":    "nobody",
				"load-3-4-x7k2p":   "nobody",
				"agent-x7k2p-abcd": "nobody",
			},
		},
		"a CronJob's pods have the number of a run": {
			workloads: keys("CronJob report", "Deployment report"),
			want: map[string]string{
				"report-29012345-x7k2p":   "CronJob report",
				"report-29012345-3-x7k2p": "CronJob report",
				"report-5d4f9c7b8-x7k2p":  "Deployment report",
				"report-29012345":         "nobody", // the Job
			},
		},
		"a bare pod has its own name": {
			workloads: keys("Pod debug", "DaemonSet debug"),
			want: map[string]string{
				"debug":       "Pod debug",
				"debug-x7k2p": "DaemonSet debug",
			},
		},
		"the longest name wins": {
			workloads: keys("StatefulSet db", "Pod db-0", "Deployment a", "DaemonSet a-5d4f9c7b8"),
			want: map[string]string{
				"db-0":              "Pod db-0",
				"a-5d4f9c7b8-x7k2p": "DaemonSet a-5d4f9c7b8",
			},
		},
		"a strict match comes before a longer name by hand": {
			workloads: keys("Deployment web", "ReplicaSet web-5d4f9c7b8"),
			want:      map[string]string{"web-5d4f9c7b8-x7k2": "ReplicaSet web-5d4f9c7b8", "web-5d4f9c7b8-x7k2p": "ReplicaSet web-5d4f9c7b8"},
		},
		"two of one name whose pods look alike get none": {
			workloads: keys("DaemonSet a", "Job a"),
			want:      map[string]string{"a-x7k2p": "nobody", "a-3-x7k2p": "Job a"},
		},
		"a workload named twice counts once": {
			workloads: keys("Deployment web", "Deployment web"),
			want:      map[string]string{"web-5d4f9c7b8-x7k2p": "Deployment web"},
		},
		"a kind that nobody knows has no pods by name": {
			workloads: keys("CloneSet web", "Series web"),
			want:      map[string]string{"web-x7k2p": "nobody", "web-0": "nobody", "web": "nobody"},
		},
		"a long name is cut in the pod's name": {
			workloads: keys("Deployment "+long50, "DaemonSet "+long57, "Deployment "+long70),
			want: map[string]string{
				long50 + "-5d4f9c7x7k2p": "Deployment " + long50, // the rest of the hash is cut
				long50 + "-5d4f9c-x7k2p": "Deployment " + long50, // just not cut
				long50 + "-api4f9cx7k2p": "Deployment " + long50, // by hand
				long50 + "-5d4f9cx7k2p":  "nobody",               // too short to have been cut
				long57 + "-x7k2p":        "DaemonSet " + long57,
				long70[:58] + "x7k2p":    "Deployment " + long70,
				long70[:58] + "-x7k2p":   "nobody",
				long70:                   "nobody",
			},
		},
		"a CronJob's long name is cut within the number": {
			workloads: keys("CronJob " + long50),
			want:      map[string]string{long50 + "-2901234" + "x7k2p": "CronJob " + long50},
		},
		"two long names that are cut alike get none": {
			workloads: keys("Deployment "+long70, "Deployment "+long70+"b"),
			want:      map[string]string{long70[:58] + "x7k2p": "nobody"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := NewOwners(tc.workloads)
			for pod, want := range tc.want {
				checkOwner(t, o, pod, want)
			}
			if _, ok := o.Of("elsewhere", "web-5d4f9c7b8-x7k2p"); ok {
				t.Error("a pod of another namespace was taken")
			}
		})
	}
}

func TestOwnersByRecord(t *testing.T) {
	tests := map[string]struct {
		workloads []WorkloadKey
		record    func(*Owners)
		want      map[string]string
	}{
		"B10: owner series decide": {
			workloads: keys("Deployment web"),
			record: func(o *Owners) {
				for _, rs := range []string{"aaa", "bbb"} {
					o.AddReplicaSet(shop, "web-"+rs, "Deployment", "web")
				}
				o.AddReplicaSet(shop, "web-api-ccc", "Deployment", "web-api")
				o.AddPod(shop, "web-aaa-x1", "ReplicaSet", "web-aaa")
				o.AddPod(shop, "web-bbb-y1", "ReplicaSet", "web-bbb")
				o.AddPod(shop, "web-api-ccc-z1", "ReplicaSet", "web-api-ccc")
			},
			want: map[string]string{
				"web-aaa-x1":     "Deployment web",
				"web-bbb-y1":     "Deployment web",
				"web-api-ccc-z1": "nobody",
			},
		},
		"a name that fits does not count against a record": {
			workloads: keys("Deployment web", "DaemonSet agent", "Pod solo"),
			record: func(o *Owners) {
				o.AddPod(shop, "web-5d4f9c7b8-x7k2p", "ReplicaSet", "web-5d4f9c7b8")
				o.AddReplicaSet(shop, "web-5d4f9c7b8", "Rollout", "web")
				o.AddPod(shop, "agent-x7k2p", "DaemonSet", "other")
				o.AddPod(shop, "agent-bbbbb", "<none>", "<none>")
				o.AddPod(shop, "solo", "Job", "solo")
			},
			want: map[string]string{
				"web-5d4f9c7b8-x7k2p": "nobody",
				"agent-x7k2p":         "nobody",
				"agent-bbbbb":         "nobody",
				"agent-ccccc":         "DaemonSet agent", // nothing is recorded
				"solo":                "nobody",
			},
		},
		"a record counts against any name": {
			workloads: keys("DaemonSet agent", "CloneSet set", "Pod solo"),
			record: func(o *Owners) {
				o.AddPod(shop, "whatever", "DaemonSet", "agent")
				o.AddPod(shop, "set-abc", "CloneSet", "set")
				o.AddPod(shop, "solo", "", "")
			},
			want: map[string]string{"whatever": "DaemonSet agent", "set-abc": "CloneSet set", "solo": "Pod solo"},
		},
		"a ReplicaSet without a record is resolved by its name": {
			workloads: keys("Deployment web", "Rollout web-api", "ReplicaSet web-own"),
			record: func(o *Owners) {
				o.AddPod(shop, "web-5d4f9c7b8-x7k2p", "ReplicaSet", "web-5d4f9c7b8")
				o.AddPod(shop, "web-aaa-x1", "ReplicaSet", "web-aaa")
				o.AddPod(shop, "web-api-5d4f9c7b8-x7k2p", "ReplicaSet", "web-api-5d4f9c7b8")
				o.AddPod(shop, "web-x-y-x7k2p", "ReplicaSet", "web-x-y")
				o.AddPod(shop, "web-cache-x7k2p", "ReplicaSet", "web-cache")
				o.AddPod(shop, "web-own-x7k2p", "ReplicaSet", "web-own")
			},
			want: map[string]string{
				"web-5d4f9c7b8-x7k2p":     "Deployment web",
				"web-aaa-x1":              "Deployment web",
				"web-api-5d4f9c7b8-x7k2p": "Rollout web-api",
				"web-x-y-x7k2p":           "nobody",
				"web-cache-x7k2p":         "nobody", // a ReplicaSet of its own
				"web-own-x7k2p":           "ReplicaSet web-own",
			},
		},
		"a ReplicaSet recorded as nobody's is not resolved by its name": {
			workloads: keys("Deployment web"),
			record: func(o *Owners) {
				o.AddPod(shop, "web-5d4f9c7b8-x7k2p", "ReplicaSet", "web-5d4f9c7b8")
				o.AddReplicaSet(shop, "web-5d4f9c7b8", "<none>", "<none>")
			},
			want: map[string]string{"web-5d4f9c7b8-x7k2p": "nobody"},
		},
		"a Job leads to its CronJob": {
			workloads: keys("CronJob report", "Job once"),
			record: func(o *Owners) {
				o.AddJob(shop, "report-by-hand", "CronJob", "report")
				o.AddPod(shop, "report-by-hand-x7k2p", "Job", "report-by-hand")
				o.AddPod(shop, "report-29012345-x7k2p", "Job", "report-29012345")
				o.AddPod(shop, "once-x7k2p", "Job", "once")
				o.AddPod(shop, "other-x7k2p", "Job", "other")
			},
			want: map[string]string{
				"report-by-hand-x7k2p":  "CronJob report",
				"report-29012345-x7k2p": "CronJob report",
				"once-x7k2p":            "Job once",
				"other-x7k2p":           "nobody",
			},
		},
		"one of several recorded owners is enough": {
			workloads: keys("StatefulSet db"),
			record: func(o *Owners) {
				o.AddPod(shop, "db-0", "<none>", "<none>")
				o.AddPod(shop, "db-0", "StatefulSet", "db")
				o.AddPod(shop, "db-0", "StatefulSet", "db")
			},
			want: map[string]string{"db-0": "StatefulSet db"},
		},
		"the ReplicaSet's whole name counts where the pod's is cut": {
			workloads: keys("Deployment " + strings.Repeat("a", 60)),
			record: func(o *Owners) {
				rs := strings.Repeat("a", 60) + "-5d4f9c7b8"
				o.AddPod(shop, rs[:58]+"x7k2p", "ReplicaSet", rs)
			},
			want: map[string]string{strings.Repeat("a", 58) + "x7k2p": "Deployment " + strings.Repeat("a", 60)},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o := NewOwners(tc.workloads)
			tc.record(o)
			for pod, want := range tc.want {
				checkOwner(t, o, pod, want)
			}
		})
	}
}

func TestGuessOwner(t *testing.T) {
	tests := map[string]string{
		"web-5d4f9c7b8-x7k2p":     "Deployment web",
		"web-api-5d4f9c7b8-x7k2p": "Deployment web-api",
		"web-api-x7k2p":           "DaemonSet web-api",
		"web-29012345-x7k2p":      "CronJob web",
		"db-0":                    "StatefulSet db",
		"db-01":                   "Pod db-01",
		"solo":                    "Pod solo",
		"5d4f9c7b8-x7k2p":         "DaemonSet 5d4f9c7b8",
		"-x7k2p":                  "Pod -x7k2p",
		"":                        "Pod ",
	}
	for pod, want := range tests {
		got := GuessOwner(shop, pod)
		if got.Kind+" "+got.Name != want {
			t.Errorf("GuessOwner(%q) = %s, want %s", pod, got, want)
		}
		if i, ok := NewOwners([]WorkloadKey{got}).Of(shop, pod); pod != "" && (!ok || i != 0) {
			t.Errorf("the guess %s for pod %q does not own it", got, pod)
		}
	}
}

// FuzzOwners holds attribution by name to two bounds: never beyond a name that
// is the beginning of the pod's, and never beyond what a query would fetch.
func FuzzOwners(f *testing.F) {
	f.Add("Deployment", "web", "web-api", "web-api-ccc-z1")
	f.Add("CronJob", "report", "report-2", "report-29012345-0-x7k2p")
	f.Add("Job", "a", "b", "a-3-x7k2p")
	f.Add("StatefulSet", "db", "db.x", "db-0")
	f.Add("DaemonSet", strings.Repeat("a", 60), "b", strings.Repeat("a", 58)+"x7k2p")
	f.Add("Deployment", strings.Repeat("a", 50), "b", strings.Repeat("a", 50)+"-5d4f9c7x7k2p")
	f.Fuzz(func(t *testing.T, kind, one, other, pod string) {
		workloads := []WorkloadKey{key(kind, one), key(kind, other), key(kindDeployment, one), key(kindPod, other)}
		i, ok := NewOwners(workloads).Of(shop, pod)
		if !ok {
			return
		}
		k := workloads[i]
		if !utf8.ValidString(k.Name) {
			return // No such name exists, and RE2 would not have it.
		}
		if !strings.HasPrefix(pod, k.Name[:min(len(k.Name), maxBase)]) {
			t.Errorf("pod %q was taken for %s, whose name it does not begin with", pod, k)
		}
		pattern, err := regexp.Compile("^(?:" + PodPattern(k) + ")$")
		if err != nil {
			t.Fatalf("compiling the pattern of %s: %v", k, err)
		}
		if !pattern.MatchString(pod) {
			t.Errorf("pod %q was taken for %s, whose pattern %s does not match it", pod, k, pattern)
		}
	})
}

func TestPodPatternJoins(t *testing.T) {
	long := strings.Repeat("a", 60)
	joined := regexp.MustCompile("^(?:" + PodPattern(key("Deployment", long)) + "|" + PodPattern(key("Pod", "my.pod")) + ")$")
	for pod, want := range map[string]bool{
		long[:58] + "x7k2p":       true,
		long + "-5d4f9c-x7k2p":    true,
		"my.pod":                  true,
		"myxpod":                  false,
		"b" + long[:58] + "x7k2p": false,
	} {
		if got := joined.MatchString(pod); got != want {
			t.Errorf("%s matches %s: %t, want %t", joined, pod, got, want)
		}
	}
}

func BenchmarkOwners(b *testing.B) {
	var workloads []WorkloadKey
	for _, c := range "abcdefghij" {
		for _, d := range "abcdefghij" {
			workloads = append(workloads, key(kindDeployment, "service-"+string(c)+"-"+string(d)))
		}
	}
	o := NewOwners(workloads)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := o.Of(shop, "service-c-d-5d4f9c7b8-x7k2p"); !ok {
			b.Fatal("no owner")
		}
	}
}

func TestWorkloadsWhoseNamesBeginAlike(t *testing.T) {
	key := func(kind, name string) WorkloadKey {
		return WorkloadKey{Namespace: "shop", Kind: kind, Name: name}
	}
	long := strings.Repeat("a", 60)
	var got []string
	for _, other := range []WorkloadKey{
		key("Deployment", "web"), key("StatefulSet", "web"), key("Deployment", "web-api"), key("Deployment", "we"),
		key("Deployment", "shop"),
		{Namespace: "bank", Kind: "StatefulSet", Name: "web"},
	} {
		if Alike(key("Deployment", "web"), other) {
			got = append(got, other.String())
		}
	}
	if want := []string{"StatefulSet shop/web", "Deployment shop/web-api", "Deployment shop/we"}; !slices.Equal(got, want) {
		t.Errorf("alike are %v, want %v", got, want)
	}
	if !Alike(key("Deployment", long+"b"), key("Deployment", long+"c")) {
		t.Error("names that pods' names cut alike are alike")
	}
}
