package prometheus

import (
	"testing"
	"time"
)

// A kubelet takes samples 10 to 19 s apart, and a rate needs two.
func TestARateWindowHoldsTwoSamples(t *testing.T) {
	for name, tc := range map[string]struct {
		written, scrape, step, want time.Duration
	}{
		"an ordinary step":                     {0, 30 * time.Second, 5 * time.Minute, 5 * time.Minute},
		"a step of two scrapes":                {0, time.Minute, 2 * time.Minute, 4 * time.Minute},
		"a fine step, and as frequent scrapes": {0, 2 * time.Second, 10 * time.Second, 40 * time.Second},
		"what is written":                      {20 * time.Second, 2 * time.Second, 10 * time.Second, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			s := DefaultSettings()
			s.RateWindow = tc.written
			if got := s.queries(tc.scrape, tc.step).rate; got != tc.want {
				t.Errorf("the window is %s, want %s", got, tc.want)
			}
		})
	}
}
