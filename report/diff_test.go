package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// lists are an earlier list and a later one, with every kind of change.
func lists() (before, now List) {
	item := func(name, cpu string, reasons ...v1alpha1.Reason) Item {
		i := Item{Namespace: "shop", Kind: "Deployment", Name: name, Container: "app", Severity: SeverityLow, Reasons: reasons}
		i.Current.Requests.CPU = text("1")
		if cpu != "" {
			i.Target.Requests.CPU = &cpu
		}
		return i
	}
	worse := item("worse", "1")
	worse.Severity = SeverityHigh
	memory := item("limit", "1")
	memory.Target.Limits.Memory = text("2Gi")
	before = NewList([]Item{
		item("moved", "400m", v1alpha1.ReasonShortHistory), item("same", "1000m", v1alpha1.ReasonThrottled, v1alpha1.ReasonHeapFloor),
		item("gone", "1"), item("reasons", "1"), item("worse", "1"), item("known", ""), item("limit", "1"),
	})
	now = NewList([]Item{
		item("moved", "500m", v1alpha1.ReasonThrottled), item("same", "1", v1alpha1.ReasonHeapFloor, v1alpha1.ReasonThrottled),
		item("new", "2"), item("reasons", "1", v1alpha1.ReasonOOMKilled), worse, item("known", "250m"), memory,
	})
	return before, now
}

func TestADifferenceSaysWhatMovedAndByHowMuch(t *testing.T) {
	d := Compare("old.json", firstOf(lists()), secondOf(lists()))
	var out bytes.Buffer
	if err := d.Write(&out, "table"); err != nil {
		t.Fatal(err)
	}
	const want = `STATE   NAMESPACE   WORKLOAD             CONTAINER   WHAT                  BEFORE   NOW     BY             REASONS
moved   shop        Deployment/moved     app         target cpu request    400m     500m    +100m (+25%)   +Throttled -ShortHistory
moved   shop        Deployment/reasons   app         reasons                                               +OOMKilled
moved   shop        Deployment/worse     app         severity              Low      High
moved   shop        Deployment/known     app         target cpu request    unset    250m
moved   shop        Deployment/limit     app         target memory limit   unset    2Gi
new     shop        Deployment/new       app         target cpu request             2
new     shop        Deployment/new       app         target memory request            unset
gone    shop        Deployment/gone      app         target cpu request    1
gone    shop        Deployment/gone      app         target memory request unset

Since old.json: 5 moved, 1 new, 1 gone, 1 as before
`
	if diff := cmp.Diff(strings.Fields(want), strings.Fields(out.String())); diff != "" {
		t.Errorf("-want +got:\n%s\n%s", diff, out.String())
	}
}

func firstOf(a, _ List) List  { return a }
func secondOf(_, b List) List { return b }

func TestNothingMovedIsSaid(t *testing.T) {
	_, now := lists()
	d := Compare("old.json", now, now)
	var out bytes.Buffer
	if err := d.Write(&out, "wide"); err != nil || out.String() != "Since old.json: 0 moved, 0 new, 0 gone, 7 as before\n" {
		t.Errorf("%q: %v", out.String(), err)
	}
	out.Reset()
	if err := d.Write(&out, "json"); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "plimsoll.dev/v1", "kind": "RecommendationDifference", "before": "old.json",
		"new": []any{}, "gone": []any{}, "moved": []any{}, "same": 7.0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	_, list := lists()
	price := 0.04
	list.Price(Prices{CPU: &price})
	for _, format := range []string{"json", "yaml"} {
		var out bytes.Buffer
		if err := list.Write(&out, format, false); err != nil {
			t.Fatal(err)
		}
		got, err := Read(out.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if d := Compare("", got, list); d.Same != 7 {
			t.Errorf("%s: %+v", format, d)
		}
	}
}

func TestAListThatIsNoneIsRefused(t *testing.T) {
	item := func(fields string) string {
		return `{"apiVersion": "plimsoll.dev/v1", "kind": "RecommendationList", "items": [` + fields + `]}`
	}
	const web = `{"namespace": "shop", "kind": "Deployment", "name": "web", "container": "app", "severity": "Low"`
	var many []string
	for n := range 12 {
		many = append(many, fmt.Sprintf(`{"namespace": "shop", "kind": "Job", "name": "job-%d", "container": "app", "severity": "Bad"}`, n))
	}
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"nothing":             {"", []string{"empty"}},
		"a table":             {"NAMESPACE   WORKLOAD\nshop   Deployment/web\n", []string{"no recommendations as plimsoll recommend -o json"}},
		"half a file":         {`{"apiVersion": "plimsoll.dev/v1", "items": [`, []string{"no recommendations", "unexpected"}},
		"a Kubernetes object": {"apiVersion: v1\nkind: ConfigMap\n", []string{"ConfigMap of v1, and not a RecommendationList of plimsoll.dev/v1"}},
		"some JSON":           {"{}", []string{"no kind of no apiVersion"}},
		"an unknown field":    {item(web + `, "mood": 1}`), []string{`unknown field "items[0].mood"`}},
		"an older form":       {item(web + `, "confidence": 0.5}`), []string{`unknown field "items[0].confidence"`}},
		"a field twice":       {item(web + `, "severity": "High"}`), []string{`duplicate field "items[0].severity"`}},
		"a container twice":   {item(web + "}," + web + "}"), []string{"items[1]: Deployment shop/web, container app is there twice"}},
		"no name":             {item(`{"kind": "Job"}`), []string{"items[0]: kind, name and container"}},
		"a quantity that is none, and a severity": {
			item(`{"kind": "Job", "name": "a", "container": "b", "severity": "Bad", "target": {"requests": {"cpu": "lots"}}}`),
			[]string{`items[0].target.requests.cpu: "lots" is no quantity`, `items[0].severity: "Bad"`},
		},
		"more faults than anybody reads": {item(strings.Join(many, ",")), []string{"items[9].severity", "and 2 more"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read([]byte(tc.text))
			if err == nil {
				t.Fatal("it is read")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in: %v", want, err)
				}
			}
		})
	}
}
