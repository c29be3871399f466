package prometheus

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-dev/plimsoll/history"
	"github.com/plimsoll-dev/plimsoll/test/promserver"
)

// kubeState is what kube-state-metrics and the kubelet show of one container
// that is killed, scraped every half minute.
type kubeState struct {
	pod        string
	start, end time.Time
	limit      float64
	kills      []time.Time
	// before is how often it was killed before start.
	before int
}

func (k kubeState) readings(read func(at time.Time, kills int) (float64, bool)) (times []int64, values []float64) {
	for at := k.start; !at.After(k.end); at = at.Add(30 * time.Second) {
		kills := k.before
		for _, kill := range k.kills {
			if !kill.After(at) {
				kills++
			}
		}
		if v, ok := read(at, kills); ok {
			times, values = append(times, at.Unix()), append(values, v)
		}
	}
	return times, values
}

// series are those of one metric.
func (k kubeState) series(metric string, read func(at time.Time, kills int) (float64, bool), more ...string) promserver.Series {
	s := promserver.Series{Labels: named(metric, k.pod, "app", more...)}
	s.Times, s.Values = k.readings(read)
	return s
}

func (k kubeState) reason() promserver.Series {
	return k.series("kube_pod_container_status_last_terminated_reason", func(_ time.Time, kills int) (float64, bool) { return 1, kills > 0 }, "reason", "OOMKilled")
}

func (k kubeState) timestamp() promserver.Series {
	return k.series("kube_pod_container_status_last_terminated_timestamp", func(_ time.Time, kills int) (float64, bool) {
		if kills == 0 {
			return 0, false
		}
		if kills == k.before {
			return float64(k.start.Add(-30 * 24 * time.Hour).Unix()), true
		}
		return float64(k.kills[kills-k.before-1].Unix()), true
	})
}

func (k kubeState) restarts() promserver.Series {
	return k.series("kube_pod_container_status_restarts_total", func(_ time.Time, kills int) (float64, bool) { return float64(kills), true })
}

func (k kubeState) limits() promserver.Series {
	return k.series("kube_pod_container_resource_limits", func(at time.Time, _ int) (float64, bool) {
		// After the last kill somebody raises it.
		if n := len(k.kills); n > 0 && at.After(k.kills[n-1].Add(time.Minute)) {
			return 2 * k.limit, true
		}
		return k.limit, true
	}, "resource", "memory", "unit", "byte")
}

func (k kubeState) specLimit() promserver.Series {
	return k.series("container_spec_memory_limit_bytes", func(time.Time, int) (float64, bool) { return k.limit, true })
}

func (k kubeState) events() promserver.Series {
	return k.series("container_oom_events_total", func(_ time.Time, kills int) (float64, bool) { return float64(kills), true })
}

// TestB13KillsInTheRealServer is field case B13.
func TestB13KillsInTheRealServer(t *testing.T) {
	end := now.Add(-90 * time.Minute)
	looping := kubeState{
		pod: "web-0", start: now.Add(-30 * time.Hour), end: now, limit: 64 * mi,
		kills: []time.Time{
			now.Add(-24 * time.Hour), // To the second at the boundary of two chunks.
			end, end.Add(40 * time.Second), end.Add(80 * time.Second), end.Add(120 * time.Second), end.Add(160 * time.Second),
		},
	}
	old := looping
	old.kills, old.before = nil, 3
	for name, tc := range map[string]struct {
		series []promserver.Series
		want   []time.Time
		slack  time.Duration // how much later a kill may be noticed
		limit  float64
	}{
		"with timestamps each kill has its time": {
			series: []promserver.Series{looping.reason(), looping.timestamp(), looping.restarts(), looping.limits()},
			want:   looping.kills,
			limit:  64 * mi,
		},
		"with restarts they are seen at the next scrape": {
			series: []promserver.Series{looping.reason(), looping.restarts(), looping.limits()},
			want:   looping.kills,
			slack:  30 * time.Second,
			limit:  64 * mi,
		},
		"with the reason alone the first is seen": {
			series: []promserver.Series{looping.reason(), looping.specLimit()},
			want:   []time.Time{looping.kills[0]},
			slack:  time.Minute,
			limit:  64 * mi,
		},
		"with the kernel's count alone": {
			series: []promserver.Series{looping.events(), looping.specLimit()},
			want:   looping.kills,
			slack:  30 * time.Second,
			limit:  64 * mi,
		},
		"the kernel's count beside timestamps counts none twice": {
			series: []promserver.Series{looping.reason(), looping.timestamp(), looping.events(), looping.limits()},
			want:   looping.kills,
			limit:  64 * mi,
		},
		"without any limit": {
			series: []promserver.Series{looping.reason(), looping.timestamp()},
			want:   looping.kills,
		},
		"kills from before the window, with timestamps": {
			series: []promserver.Series{old.reason(), old.timestamp(), old.restarts(), old.events()},
		},
		"kills from before the window, without": {
			series: []promserver.Series{old.reason(), old.restarts(), old.events()},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source, _ := newTestSource(t, promserver.Start(t, tc.series).URL, func(s *Settings) { s.ScrapeInterval = 30 * time.Second })
			u := mustLoad(t, source, query(25*time.Hour, 5*time.Minute, statefulSet("web")))
			var kills []history.OOMKill
			if c := u.Containers["app"]; c != nil {
				kills = c.OOMKills
			}
			var got []time.Time
			for _, k := range kills {
				got = append(got, k.At)
				if k.Pod != "web-0" || k.LimitBytes != tc.limit {
					t.Errorf("a kill in pod %s at a limit of %v, want web-0 and %v", k.Pod, k.LimitBytes, tc.limit)
				}
			}
			if !slices.EqualFunc(got, tc.want, func(got, want time.Time) bool {
				return !got.Before(want) && got.Sub(want) <= tc.slack
			}) {
				t.Errorf("kills (-want +got):\n%s", cmp.Diff(tc.want, got))
			}
			if len(kills) > 0 && u.Containers["app"].CPU.Count() > 0 {
				t.Error("there are CPU samples, and none were recorded")
			}
		})
	}
}

// A pod with usage, one peak before the kill.
// Field case B13.
func TestB13UseBeforeTheKillIsKnown(t *testing.T) {
	kill := now.Add(-2*time.Hour + 14*time.Second)
	k := kubeState{pod: "web-0", start: now.Add(-4 * time.Hour), end: now, limit: 512 * mi, kills: []time.Time{kill}}
	used := k.series(memoryMetric, func(at time.Time, kills int) (float64, bool) {
		if kills == 0 && at.After(kill.Add(-time.Minute)) {
			return 476450463, true
		}
		return 200 * mi, true
	})
	s, _ := newTestSource(t, promserver.Start(t, []promserver.Series{used, k.reason(), k.timestamp(), k.limits()}).URL)
	u := mustLoad(t, s, query(8*time.Hour, 5*time.Minute, statefulSet("web")))
	want := []history.OOMKill{{At: time.Unix(kill.Unix(), 0), Pod: "web-0", LimitBytes: 512 * mi, UsedBytes: 476450463}}
	if diff := cmp.Diff(want, u.Containers["app"].OOMKills); diff != "" {
		t.Errorf("kills (-want +got):\n%s", diff)
	}
}

// Of a pod that was killed long ago no details are asked.
func TestOldKillsCostNoDetails(t *testing.T) {
	old := kubeState{pod: "web-0", start: now.Add(-30 * time.Hour), end: now, limit: 64 * mi, before: 1}
	s, _ := newTestSource(t, promserver.Start(t, []promserver.Series{old.reason(), old.timestamp(), old.limits()}).URL)
	r := new(recorder)
	r.Client = s.recorded(t, r)
	if u := mustLoad(t, s, query(24*time.Hour, 5*time.Minute, statefulSet("web"))); len(u.Containers) > 0 {
		t.Errorf("there are containers %v", u.Containers)
	}
	for _, sent := range r.all {
		form, err := url.ParseQuery(string(sent.body))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(form.Get("query"), "kube_pod_container_resource_limits") {
			t.Errorf("the limit is asked for: %s", form.Get("query"))
		}
	}
}
