package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestRemaining(t *testing.T) {
	for name, tc := range map[string]struct {
		elapsed     time.Duration
		done, total int
		want        time.Duration
		known       bool
	}{
		"half of it is as much again":              {10 * time.Second, 5, 10, 10 * time.Second, true},
		"rounded up to seconds":                    {10 * time.Second, 3, 4, 4 * time.Second, true},
		"above a minute in tens of seconds":        {100 * time.Second, 50, 93, 90 * time.Second, true},
		"above ten minutes in minutes":             {10 * time.Minute, 10, 31, 21 * time.Minute, true},
		"a day":                                    {30 * time.Minute, 2, 98, 24 * time.Hour, true},
		"all done":                                 {time.Minute, 9, 9, 0, true},
		"more done than there was":                 {time.Minute, 10, 9, 0, true},
		"nothing is done yet":                      {time.Minute, 0, 9, 0, false},
		"the first seconds say nothing":            {2 * time.Second, 5, 10, 0, false},
		"a hundredth says nothing":                 {time.Minute, 1, 100, 0, false},
		"nothing to do":                            {time.Minute, 0, 0, 0, false},
		"a clock that went back says nothing":      {-time.Minute, 5, 10, 0, false},
		"a total that grew makes it longer, again": {20 * time.Second, 10, 30, 40 * time.Second, true},
	} {
		if got, known := remaining(tc.elapsed, tc.done, tc.total); got != tc.want || known != tc.known {
			t.Errorf("%s: %s, %t; want %s, %t", name, got, known, tc.want, tc.known)
		}
	}
}

func TestTheProgressLineIsRedrawnNowAndThenAndTakenAway(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(1000, 0)
	p := &progressLine{to: &out, doing: "Reading history", now: func() time.Time { return now }}
	at := func(seconds float64, done, total int) {
		now = time.Unix(1000, 0).Add(time.Duration(seconds * float64(time.Second)))
		p.show(done, total)
	}
	at(0, 1, 10)
	at(0.05, 2, 10) // Too soon to be drawn.
	at(4, 4, 10)
	at(4.5, 3, 10) // It came late.
	at(5, 10, 10)
	at(5.5, 9, 10) // So did this.
	at(6, 1, 3)    // Another load: nothing is known of its pace.
	want := strings.Join([]string{
		"", "Reading history: 1 of 10", "Reading history: 4 of 10, about 6s left", "", "Reading history: 1 of 3",
	}, clearLine)
	if got := out.String(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
