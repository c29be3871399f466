package report

import (
	"bufio"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"

	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/sizing"
)

// patchPaths is where the pods' spec stands in each kind that Kubernetes has
// merge rules for. Of any other kind a strategic merge falls back to one that
// replaces whole lists, and with it every container.
var patchPaths = map[string][]string{
	"apps/v1 Deployment":  {"spec", "template", "spec"},
	"apps/v1 StatefulSet": {"spec", "template", "spec"},
	"apps/v1 DaemonSet":   {"spec", "template", "spec"},
	"apps/v1 ReplicaSet":  {"spec", "template", "spec"},
	"batch/v1 Job":        {"spec", "template", "spec"},
	"batch/v1 CronJob":    {"spec", "jobTemplate", "spec", "template", "spec"},
	"v1 Pod":              {"spec"},
}

// containerPatch is what changes of one container.
type containerPatch struct {
	Name      string         `json:"name"`
	Resources resourcesPatch `json:"resources"`
}

type resourcesPatch struct {
	Requests map[string]string `json:"requests,omitempty"`
	Limits   map[string]string `json:"limits,omitempty"`
}

// writePatches writes a strategic merge patch for each workload of which
// anything changes, as documents of one YAML stream. What cannot be patched in
// this way is named in a comment.
func (l List) writePatches(to io.Writer) error {
	w := bufio.NewWriter(to)
	fmt.Fprintln(w, "# Strategic merge patches; see docs/outputs.md.")
	for first := 0; first < len(l.Items); {
		n := first + 1
		for n < len(l.Items) && l.Items[n].key() == l.Items[first].key() {
			n++
		}
		if err := writePatch(w, l.Items[first:n]); err != nil {
			return err
		}
		first = n
	}
	return w.Flush()
}

func (i *Item) key() history.WorkloadKey {
	return history.WorkloadKey{Namespace: i.Namespace, Kind: i.Kind, Name: i.Name}
}

// writePatch writes the patch of one workload, if anything of it changes.
func writePatch(w io.Writer, items []Item) error {
	lists := map[string][]containerPatch{}
	for n := range items {
		if p, ok := items[n].patch(); ok {
			list := "containers"
			if items[n].Sidecar {
				list = "initContainers"
			}
			lists[list] = append(lists[list], p)
		}
	}
	if len(lists) == 0 {
		return nil
	}
	first := &items[0]
	path, ok := patchPaths[first.APIVersion+" "+first.Kind]
	if !ok {
		fmt.Fprintf(w, "# Left out: %s, a kind without rules for a strategic merge.\n", first.key())
		return nil
	}
	var body any = lists
	for n := len(path) - 1; n >= 0; n-- {
		body = map[string]any{path[n]: body}
	}
	document := body.(map[string]any)
	document["apiVersion"], document["kind"] = first.APIVersion, first.Kind
	document["metadata"] = map[string]string{"name": first.Name, "namespace": first.Namespace}
	text, err := yaml.Marshal(document)
	if err != nil {
		return fmt.Errorf("encoding the patch of %s: %w", first.key(), err)
	}
	fmt.Fprintf(w, "---\n%s", text)
	return nil
}

// patch is what changes of a container; false where nothing does. A limit that
// is there is never taken away.
func (i *Item) patch() (containerPatch, bool) {
	p := containerPatch{Name: i.Container}
	set := func(to *map[string]string, name string, now, then *string) {
		if then == nil || SameQuantity(now, then) {
			return
		}
		if *to == nil {
			*to = map[string]string{}
		}
		(*to)[name] = *then
	}
	for _, r := range sizing.Resources {
		set(&p.Resources.Requests, string(r), *i.Current.Requests.For(r), *i.Target.Requests.For(r))
		set(&p.Resources.Limits, string(r), *i.Current.Limits.For(r), *i.Target.Limits.For(r))
	}
	return p, p.Resources.Requests != nil || p.Resources.Limits != nil
}
