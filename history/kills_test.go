package history

import (
	"slices"
	"testing"
	"time"
)

func TestAKillCountsOnce(t *testing.T) {
	at := func(seconds int) time.Time { return end.Add(time.Duration(seconds) * time.Second) }
	source := func(seconds int) OOMKill { return OOMKill{At: at(seconds), Pod: "web-0", UsedBytes: 90} }
	status := func(seconds int) OOMKill {
		return OOMKill{At: at(seconds), Pod: "web-0", LimitBytes: 100, Place: PlacePodStatus}
	}
	for name, tc := range map[string]struct {
		kills []OOMKill
		want  []int // seconds
	}{
		"the same twice":                       {[]OOMKill{source(0), source(0)}, []int{0}},
		"one that two places date alike":       {[]OOMKill{source(0), status(0)}, []int{0}},
		"one that the source dates later":      {[]OOMKill{source(300), status(0)}, []int{0}},
		"one that the pod's status dates late": {[]OOMKill{source(0), status(20)}, []int{20}},
		"a crash loop that one place sees":     {[]OOMKill{status(0), status(20), status(60), status(140)}, []int{0, 20, 60, 140}},
		"a crash loop that both places see": {
			[]OOMKill{source(30), source(60), source(150), status(10), status(50), status(140)}, []int{10, 50, 140},
		},
		"two that are too far apart": {[]OOMKill{source(301), status(0)}, []int{0, 301}},
		"those of two pods":          {[]OOMKill{source(0), {At: at(0), Pod: "web-1", Place: PlacePodStatus}}, []int{0, 0}},
		"what both know, told again": {[]OOMKill{source(60), status(0), source(60), status(0)}, []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			c := NewContainer()
			for _, k := range tc.kills {
				c.AddOOMKill(k)
			}
			var got []int
			for _, k := range c.OOMKills {
				got = append(got, int(k.At.Sub(end).Seconds()))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("kills at %v seconds, want %v", got, tc.want)
			}
		})
	}
}
