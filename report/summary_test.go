package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// summed is a list with every kind of row that sums tell apart.
func summed() List {
	three := int32(3)
	cpu := func(now, then string) (Resources, Resources) {
		var a, b Resources
		if now != "" {
			a.Requests.CPU = &now
		}
		if then != "" {
			b.Requests.CPU = &then
		}
		return a, b
	}
	item := func(name string, replicas *int32, now, then string) Item {
		i := Item{Namespace: "shop", Kind: "Deployment", Name: name, Container: "app", Replicas: replicas, Severity: SeverityLow}
		i.Current, i.Target = cpu(now, then)
		return i
	}
	daemons := item("daemons", nil, "100m", "200m")
	daemons.Pods.Live = 40
	unknown := item("once", nil, "100m", "50m")
	ignored := item("ignored", &three, "9", "")
	ignored.Reasons = []v1alpha1.Reason{v1alpha1.ReasonIgnored}
	return NewList([]Item{
		item("web", &three, "1", "250m"), daemons, unknown,
		item("unset", &three, "", "300m"), item("unset too", &three, "", "100m"),
		item("no data", &three, "7", ""), ignored,
	})
}

func TestSumsTellUnsetFromZeroAndPodsFromReplicas(t *testing.T) {
	got := summed().Summary
	want := Sum{
		Compared: 3,
		PerPod:   Change{text("1200m"), text("500m"), text("-700m")},
		// Three replicas, forty pods of a kind without replicas that were seen
		// live, and one that was not.
		Total:  Change{text("7100m"), text("8800m"), text("1700m")},
		Unset:  Added{2, text("400m"), text("1200m")},
		NoData: 1, Ignored: 1,
	}
	if diff := cmp.Diff(want, got.CPU); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(Sum{NoData: 6, Ignored: 1}, got.Memory); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got.Severities != (SeverityCounts{Low: 7}) || got.Containers != 7 || got.Savings != nil {
		t.Errorf("%+v", got)
	}
	var out bytes.Buffer
	got.write(&out)
	const lines = `Requests of all replicas: cpu 7100m → 8800m (+1700m, +24%); memory none
One pod of each workload: cpu 1200m → 500m (-700m, -58%); memory none
Not in the sums: 2 containers have no CPU request: their targets add 1200m over all replicas, 400m in one pod of each.
Not in the sums: 1 container without data on CPU.
Not in the sums: 1 container ignored, for CPU.
Not in the sums: 6 containers without data on memory.
Not in the sums: 1 container ignored, for memory.
`
	if diff := cmp.Diff(lines, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPricesMakeSavings(t *testing.T) {
	price := func(v float64) *float64 { return &v }
	for name, tc := range map[string]struct {
		prices Prices
		want   string // empty: nothing is said
		web    string // what the first item saves
	}{
		"without prices nothing is said": {Prices{Currency: "$"}, "", ""},
		"dearer in all, web is cheaper":  {Prices{CPU: price(0.1), Currency: "$"}, "Costs $124.10 more a month (730 h): CPU -$124.10", "164.25"},
		"a currency of several letters":  {Prices{CPU: price(0.1), Currency: "EUR"}, "Costs EUR 124.10 more a month (730 h): CPU -EUR 124.10", "164.25"},
		"no currency":                    {Prices{CPU: price(0.01)}, "Costs 12.41 more a month (730 h): CPU -12.41", "16.43"},
		"for nothing":                    {Prices{CPU: price(0)}, "Saves 0.00 a month (730 h): CPU 0.00", "0.00"},
		"only memory has a price":        {Prices{Memory: price(1)}, "Saves 0.00 a month (730 h): memory 0.00", ""},
	} {
		t.Run(name, func(t *testing.T) {
			list := summed()
			list.Price(tc.prices)
			got := ""
			if s := list.Summary.Savings; s != nil {
				got = s.String()
			}
			web := ""
			if s := list.Items[0].SavingPerMonth; s != nil {
				web = *s
			}
			if got != tc.want || web != tc.web {
				t.Errorf("%q and of the first item %q, want %q and %q", got, web, tc.want, tc.web)
			}
			var wide bytes.Buffer
			if err := list.Write(&wide, "wide", false); err != nil {
				t.Fatal(err)
			}
			if shown := strings.Contains(wide.String(), "SAVES A MONTH"); shown != (tc.want != "") {
				t.Errorf("savings are shown: %t\n%s", shown, wide.String())
			}
		})
	}
}

func TestAMonthOfAGibibyteIsItsPriceTimesItsHours(t *testing.T) {
	one := 0.004
	list := NewList([]Item{{
		Current: Resources{Requests: Amounts{Memory: text("3Gi")}}, Target: Resources{Requests: Amounts{Memory: text("1Gi")}},
	}})
	list.Price(Prices{Memory: &one})
	if got := list.Summary.Savings; got.PerMonth != "5.84" || *got.Memory != "5.84" || got.CPU != nil || *got.MemoryPerGiBHour != "0.004" {
		t.Errorf("%+v", got)
	}
}

func TestTheJSONOfASummaryHasNullsAndNoZeros(t *testing.T) {
	got, err := json.Marshal(NewList(nil).Summary.CPU)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"compared":0,"perPod":{"current":null,"target":null,"delta":null},"total":{"current":null,"target":null,"delta":null},` +
		`"unset":{"containers":0,"perPod":null,"total":null},"noData":0,"ignored":0}`
	if string(got) != want {
		t.Errorf("%s", got)
	}
}
