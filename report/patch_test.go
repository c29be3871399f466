package report

import (
	"bytes"
	"strings"
	"testing"
)

func TestAPatchHoldsOnlyWhatChanges(t *testing.T) {
	same := Resources{Requests: Amounts{CPU: text("1"), Memory: text("1Gi")}}
	list := NewList([]Item{
		{
			Namespace: "shop", APIVersion: "apps/v1", Kind: "Deployment", Name: "web", Container: "app",
			Current: Resources{Requests: Amounts{CPU: text("1000m"), Memory: text("1Gi")}, Limits: Amounts{CPU: text("0"), Memory: text("1Gi")}},
			Target:  Resources{Requests: Amounts{CPU: text("1"), Memory: text("2Gi")}, Limits: Amounts{Memory: text("2Gi")}},
		},
		{Namespace: "shop", APIVersion: "apps/v1", Kind: "Deployment", Name: "web", Container: "log", Current: same, Target: same},
		{
			Namespace: "shop", APIVersion: "apps/v1", Kind: "Deployment", Name: "web", Container: "proxy", Sidecar: true,
			Target: Resources{Requests: Amounts{CPU: text("2")}},
		},
		{Namespace: "shop", APIVersion: "apps/v1", Kind: "Deployment", Name: "well", Container: "app", Current: same, Target: same},
		{Namespace: "shop", APIVersion: "apps/v1", Kind: "Deployment", Name: "unknown", Container: "app", Current: same},
		{
			Namespace: "shop", APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout", Name: "blue", Container: "app",
			Target: Resources{Requests: Amounts{CPU: text("2")}},
		},
		{
			Namespace: "shop", APIVersion: "v1", Kind: "Pod", Name: "bare", Container: "app",
			Target: Resources{Requests: Amounts{CPU: text("2")}},
		},
	})
	const want = `# Strategic merge patches; see docs/outputs.md.
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
spec:
  template:
    spec:
      containers:
      - name: app
        resources:
          limits:
            memory: 2Gi
          requests:
            memory: 2Gi
      initContainers:
      - name: proxy
        resources:
          requests:
            cpu: "2"
# Left out: Rollout shop/blue, a kind without rules for a strategic merge.
---
apiVersion: v1
kind: Pod
metadata:
  name: bare
  namespace: shop
spec:
  containers:
  - name: app
    resources:
      requests:
        cpu: "2"
`
	var out bytes.Buffer
	if err := list.Write(&out, "patch", false); err != nil {
		t.Fatal(err)
	}
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	if err := NewList(list.Items[3:5]).Write(&out, "patch", false); err != nil || strings.Contains(out.String(), "---") {
		t.Errorf("a patch, and nothing changes: %v\n%s", err, out.String())
	}
}
