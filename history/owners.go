package history

import (
	"regexp"
	"slices"
	"strings"
)

// Kinds of workloads whose pods' names Owners knows. A workload of any other
// kind gets pods through owner records only.
const (
	kindDeployment            = "Deployment"
	kindRollout               = "Rollout"
	kindReplicaSet            = "ReplicaSet"
	kindReplicationController = "ReplicationController"
	kindDaemonSet             = "DaemonSet"
	kindStatefulSet           = "StatefulSet"
	kindJob                   = "Job"
	kindCronJob               = "CronJob"
	kindPod                   = "Pod"
)

const (
	// nameAlphabet is what the API server makes names of that it completes:
	// no vowels, so that no words appear.
	nameAlphabet = "bcdfghjklmnpqrstvwxz2456789"
	// suffixLength is how many of them follow a generateName.
	suffixLength = 5
	// maxBase is where the API server cuts a generateName, so that the suffix
	// fits into 63 characters. It cuts without regard to what it cuts off.
	maxBase = 63 - suffixLength
	// hashAlphabet is what a pod-template-hash is made of: the ten digits of
	// a 32-bit sum in decimal, each mapped into nameAlphabet.
	hashAlphabet = "bcdf456789"
	// maxHash is how many digits a 32-bit sum has at most.
	maxHash = 10
	// minHash is how short a hash may be and still be told from a word such
	// as "db" by length alone. Of all hashes one in 40,000 is shorter.
	minHash = 6
	// cronDigits is the length of a CronJob's run number, minutes since 1970,
	// until the year 2160.
	cronDigits = 8
)

// Owners says to which workload a pod belongs, past pods included.
//
// Records of owners decide where there are any: a pod that is recorded as
// somebody else's is never taken for its name. Without a record the names that
// Kubernetes gives to pods of the workload's kind decide, never a bare prefix.
type Owners struct {
	workloads []WorkloadKey
	// byKey finds a workload; the first of equal ones counts.
	byKey map[WorkloadKey]int
	// byName finds the workloads of one name, of whatever kind.
	byName map[object][]int
	// byCut finds those whose names are too long to stand in a pod's name.
	byCut map[object][]int
	// pods, replicaSets and jobs hold the recorded owners of each object.
	pods, replicaSets, jobs map[object][]owner
}

// object names something in a namespace; its kind is known from the context.
type object struct{ namespace, name string }

// owner is the controller of an object; an empty kind is none at all.
type owner struct{ kind, name string }

// NewOwners returns the owners among the workloads, without any records.
func NewOwners(workloads []WorkloadKey) *Owners {
	o := &Owners{
		workloads:   workloads,
		byKey:       make(map[WorkloadKey]int, len(workloads)),
		byName:      make(map[object][]int, len(workloads)),
		byCut:       map[object][]int{},
		pods:        map[object][]owner{},
		replicaSets: map[object][]owner{},
		jobs:        map[object][]owner{},
	}
	for i, k := range workloads {
		if _, ok := o.byKey[k]; ok || k.Name == "" {
			continue
		}
		o.byKey[k] = i
		id := object{k.Namespace, k.Name}
		o.byName[id] = append(o.byName[id], i)
		if len(k.Name) >= maxBase {
			id.name = k.Name[:maxBase]
			o.byCut[id] = append(o.byCut[id], i)
		}
	}
	return o
}

// AddPod records the controller of a pod, as kube_pod_owner gives it. An empty
// kind, or "<none>", records that there is none.
func (o *Owners) AddPod(namespace, pod, ownerKind, ownerName string) {
	record(o.pods, object{namespace, pod}, ownerKind, ownerName)
}

// AddReplicaSet records the controller of a ReplicaSet, as
// kube_replicaset_owner gives it.
func (o *Owners) AddReplicaSet(namespace, name, ownerKind, ownerName string) {
	record(o.replicaSets, object{namespace, name}, ownerKind, ownerName)
}

// AddJob records the controller of a Job, as kube_job_owner gives it.
func (o *Owners) AddJob(namespace, name, ownerKind, ownerName string) {
	record(o.jobs, object{namespace, name}, ownerKind, ownerName)
}

// record keeps each owner once: the same record comes again with every chunk
// of a query.
func record(m map[object][]owner, id object, kind, name string) {
	if kind == "<none>" {
		kind, name = "", ""
	}
	by := owner{kind, name}
	if !slices.Contains(m[id], by) {
		m[id] = append(m[id], by)
	}
}

// Alike says whether a pod of one workload could by its name be the other's:
// one of their names begins with the other, as far as it stands in the names of
// pods. Who asks for one of them asks for both, so that each gets its own.
func Alike(a, b WorkloadKey) bool {
	cut := func(name string) string { return name[:min(len(name), maxBase)] }
	return a != b && a.Namespace == b.Namespace &&
		(strings.HasPrefix(a.Name, cut(b.Name)) || strings.HasPrefix(b.Name, cut(a.Name)))
}

// Of returns the index of the workload that the pod belongs to. It is false
// where the pod belongs to none of them, or where its name fits several alike.
func (o *Owners) Of(namespace, pod string) (index int, ok bool) {
	recorded := o.pods[object{namespace, pod}]
	for _, by := range recorded {
		if i, ok := o.ofOwner(namespace, pod, by); ok {
			return i, true
		}
	}
	if len(recorded) > 0 {
		return 0, false
	}
	for _, r := range []rigour{strict, lenient} {
		if i, ok := o.byPattern(namespace, pod, r); ok {
			return i, true
		}
	}
	return 0, false
}

// ofOwner follows a pod's owner to a workload.
func (o *Owners) ofOwner(namespace, pod string, by owner) (int, bool) {
	switch by.kind {
	case "":
		return o.find(namespace, kindPod, pod)
	case kindReplicaSet:
		return o.ofParent(namespace, by, o.replicaSets, func(k WorkloadKey, r rigour) bool {
			hash, ok := strings.CutPrefix(by.name, k.Name+"-")
			return ok && ownsReplicaSets(k.Kind) && r.hash(hash, pod[max(0, len(pod)-suffixLength):], false)
		})
	case kindJob:
		return o.ofParent(namespace, by, o.jobs, func(k WorkloadKey, r rigour) bool {
			number, ok := strings.CutPrefix(by.name, k.Name+"-")
			return ok && k.Kind == kindCronJob && r.number(number, false)
		})
	}
	return o.find(namespace, by.kind, by.name)
}

// ofParent returns the workload behind a ReplicaSet or Job: its recorded owner,
// or itself, or where nothing is recorded the workload that would have given
// it its name.
func (o *Owners) ofParent(namespace string, parent owner, records map[object][]owner, fits func(WorkloadKey, rigour) bool) (int, bool) {
	recorded := records[object{namespace, parent.name}]
	for _, by := range recorded {
		if i, ok := o.find(namespace, by.kind, by.name); ok {
			return i, true
		}
	}
	if i, ok := o.find(namespace, parent.kind, parent.name); ok || len(recorded) > 0 {
		return i, ok
	}
	for _, r := range []rigour{strict, lenient} {
		for name := parent.name; name != ""; name = cutSegment(name) {
			if i, ok := o.only(o.byName[object{namespace, name}], func(k WorkloadKey) bool { return fits(k, r) }); ok {
				return i, true
			}
		}
	}
	return 0, false
}

func (o *Owners) find(namespace, kind, name string) (int, bool) {
	i, ok := o.byKey[WorkloadKey{Namespace: namespace, Kind: kind, Name: name}]
	return i, ok
}

// byPattern returns the workload with the longest name among those that may
// have given the pod its name. Two with the same name cannot be told apart.
func (o *Owners) byPattern(namespace, pod string, r rigour) (int, bool) {
	fits := func(k WorkloadKey) bool { return r.fits(k, pod) }
	if len(pod) == maxBase+suffixLength {
		if i, ok := o.only(o.byCut[object{namespace, pod[:maxBase]}], fits); ok {
			return i, true
		}
	}
	for name := pod; name != ""; name = cutSegment(name) {
		if i, ok := o.only(o.byName[object{namespace, name}], fits); ok {
			return i, true
		}
	}
	return 0, false
}

// only returns the one workload that fits; where several do it returns none,
// since a wrong attribution is worse than a missing one.
func (o *Owners) only(candidates []int, fits func(WorkloadKey) bool) (int, bool) {
	found, ok := 0, false
	for _, i := range candidates {
		if !fits(o.workloads[i]) {
			continue
		}
		if ok {
			return 0, false
		}
		found, ok = i, true
	}
	return found, ok
}

// cutSegment drops the last "-" and what follows; without one nothing is left.
func cutSegment(name string) string {
	return name[:max(0, strings.LastIndexByte(name, '-'))]
}

func ownsReplicaSets(kind string) bool { return kind == kindDeployment || kind == kindRollout }

// rigour is how literally names are taken.
type rigour bool

const (
	// strict knows what the API server and the controllers generate.
	strict rigour = true
	// lenient also knows names written by hand or by other tools, in tests and
	// recordings. It still refuses what looks like the pod of something else.
	lenient rigour = false
)

// fits reports whether the pod's name is one that the workload's kind gives.
func (r rigour) fits(k WorkloadKey, pod string) bool {
	switch k.Kind {
	case kindPod:
		return pod == k.Name
	case kindStatefulSet:
		ordinal, ok := strings.CutPrefix(pod, k.Name+"-")
		return ok && isNumber(ordinal)
	}
	middle, suffix, cut, ok := splitGenerated(k.Name, pod)
	if !ok || !r.suffix(suffix) {
		return false
	}
	switch k.Kind {
	case kindDeployment, kindRollout:
		return r.hash(middle, suffix, cut)
	case kindReplicaSet, kindReplicationController, kindDaemonSet:
		return middle == ""
	case kindJob:
		return middle == "" || isNumber(middle) // A number is the index of an Indexed Job.
	case kindCronJob:
		return r.run(middle, cut)
	}
	return false
}

// splitGenerated takes the pod's name apart that was generated from the
// workload's: name-middle-suffix or name-suffix. In a cut name a part of the
// middle is missing, and the dash after it.
func splitGenerated(name, pod string) (middle, suffix string, cut, ok bool) {
	if len(pod) < maxBase+suffixLength {
		rest, ok := strings.CutPrefix(pod, name+"-")
		dash := strings.LastIndexByte(rest, '-')
		return rest[:max(0, dash)], rest[dash+1:], false, ok && dash != 0
	}
	if len(pod) > maxBase+suffixLength {
		return "", "", false, false
	}
	base, suffix := pod[:maxBase], pod[maxBase:]
	if len(name) >= maxBase {
		return "", suffix, true, name[:maxBase] == base
	}
	middle, ok = strings.CutPrefix(base, name+"-")
	middle, whole := strings.CutSuffix(middle, "-")
	return middle, suffix, !whole, ok
}

// suffix reports whether s may end a generated name.
func (r rigour) suffix(s string) bool {
	if r == strict {
		return isGeneratedSuffix(s)
	}
	return len(s) >= 1 && len(s) <= suffixLength && isAlphanumeric(s)
}

// hash reports whether s may be a pod-template-hash before the given suffix,
// or the beginning of one in a name that was cut.
func (r rigour) hash(s, suffix string, cut bool) bool {
	switch {
	case cut && r == strict:
		return len(s) <= maxHash && consistsOf(s, hashAlphabet)
	case cut:
		return len(s) <= maxHash && isAlphanumeric(s)
	case len(s) < 1 || len(s) > maxHash || !isAlphanumeric(s):
		return false
	case isTemplateHash(s):
		return true
	case r == strict:
		return false
	}
	// The pod web-api-x7k2p is rather one of a DaemonSet web-api, web-db-0 one
	// of a StatefulSet web-db, and web-29012345-x7k2p one of a CronJob web.
	return !isGeneratedSuffix(suffix) && !isNumber(suffix) || isPlausibleHash(s)
}

// run reports whether s may stand between a CronJob's name and the suffix: the
// number of a run, and the index where its Job is an Indexed one.
func (r rigour) run(s string, cut bool) bool {
	number, index, indexed := strings.Cut(s, "-")
	return r.number(number, cut) && (!indexed || isNumber(index))
}

// number reports whether s may be the number of a CronJob's run, or the
// beginning of one in a name that was cut.
func (r rigour) number(s string, cut bool) bool {
	switch {
	case cut:
		return s == "" || isDigits(s)
	case r == strict:
		return len(s) == cronDigits && isDigits(s)
	}
	return isDigits(s)
}

// isTemplateHash reports whether s is a pod-template-hash beyond reasonable
// doubt: its alphabet, and long enough, or with too many digits for a word.
func isTemplateHash(s string) bool {
	if s == "" || len(s) > maxHash || !consistsOf(s, hashAlphabet) {
		return false
	}
	letters := strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' {
			return -1
		}
		return c
	}, s)
	return len(s) >= minHash || len(s)-len(letters) >= 2
}

// isPlausibleHash reports whether s looks like something that was computed:
// long, with a digit, and not the number of a CronJob's run.
func isPlausibleHash(s string) bool {
	return len(s) >= minHash && strings.ContainsAny(s, "0123456789") && !isDigits(s)
}

func isGeneratedSuffix(s string) bool {
	return len(s) == suffixLength && consistsOf(s, nameAlphabet)
}

// isNumber reports whether s is an ordinal or index as Kubernetes writes it.
func isNumber(s string) bool {
	return isDigits(s) && len(s) <= 10 && (s == "0" || s[0] != '0')
}

func isDigits(s string) bool { return s != "" && consistsOf(s, "0123456789") }

func isAlphanumeric(s string) bool {
	return consistsOf(s, "0123456789abcdefghijklmnopqrstuvwxyz")
}

func consistsOf(s, alphabet string) bool { return strings.Trim(s, alphabet) == "" }

// PodPattern is a regular expression, RE2 and without anchors, that the names
// of all pods match which Of would give the workload for their names. It is
// for queries, where several are joined by "|", and matches other pods as
// well: Of decides.
func PodPattern(k WorkloadKey) string {
	const hash, suffix = "[a-z0-9]{1,10}", "[a-z0-9]{1,5}"
	name := regexp.QuoteMeta(k.Name)
	switch k.Kind {
	case kindPod:
		return name
	case kindStatefulSet:
		return name + "-[0-9]{1,10}"
	case kindDeployment, kindRollout:
		return name + "-" + hash + "-" + suffix + cutPattern(k.Name, maxHash+1)
	case kindReplicaSet, kindReplicationController, kindDaemonSet:
		return name + "-" + suffix + cutPattern(k.Name, 0)
	case kindJob:
		return name + "-([0-9]{1,10}-)?" + suffix + cutPattern(k.Name, maxHash+1)
	case kindCronJob:
		return name + "-[0-9]+-([0-9]{1,10}-)?" + suffix + cutPattern(k.Name, 2*maxHash)
	}
	return name + "-[a-z0-9-]+"
}

// cutPattern is the alternative for pods whose generated names may have been
// cut: those of workloads with names so long that the middle does not fit.
func cutPattern(name string, middle int) string {
	if len(name)+1+middle+1 <= maxBase {
		return ""
	}
	return "|" + regexp.QuoteMeta(name[:min(len(name), maxBase)]) + "[a-z0-9-]+"
}

// GuessOwner returns the workload that a pod seems to belong to, for its name
// alone: a Deployment, StatefulSet, DaemonSet or CronJob where the name is
// strictly one that Kubernetes generates, else the pod itself. ReplicaSets and
// Jobs name their pods as DaemonSets do and are taken for such.
func GuessOwner(namespace, pod string) WorkloadKey {
	parent := cutSegment(pod)
	last := strings.TrimPrefix(pod[len(parent):], "-")
	switch {
	case parent == "":
	case isNumber(last):
		return WorkloadKey{namespace, kindStatefulSet, parent}
	case isGeneratedSuffix(last):
		name := cutSegment(parent)
		middle := strings.TrimPrefix(parent[len(name):], "-")
		switch {
		case name == "":
		case isTemplateHash(middle):
			return WorkloadKey{namespace, kindDeployment, name}
		case strict.number(middle, false):
			return WorkloadKey{namespace, kindCronJob, name}
		}
		return WorkloadKey{namespace, kindDaemonSet, parent}
	}
	return WorkloadKey{namespace, kindPod, pod}
}
