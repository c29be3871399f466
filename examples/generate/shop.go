package main

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// Everything is in integers, so that the same bytes come out on every machine:
// floating point is rounded differently where the processor fuses operations.
const (
	step = 300
	day  = 24 * 60 * 60
	days = 9
	mib  = 1 << 20
)

// start is the beginning of the history: a Monday, so that it holds a weekend.
var start = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC).Unix()

// container is a container of a pod, and how it behaves.
type container struct {
	pod, name string
	// from and to are when the pod lived, in seconds from start.
	from, to int64
	usage    func(at moment) usage
}

// moment is what a container's usage depends on.
type moment struct {
	// second since start, and since the pod's start.
	second, age int64
	// load of the shop, in thousandths of its weekday peak.
	load int64
	// noise returns a number from -n to n, the middle ones more often.
	noise func(n int64) int64
}

// usage is one row of history.
type usage struct {
	milliCores, mebibytes int64
}

// shop is the containers of the namespace shop. The manifests beside the history
// say what each asks for.
func shop() []container {
	const whole = days * day
	// The Deployment web was rolled out on the sixth day.
	const rollout = 5*day + 10*60*60
	var all []container
	for _, pod := range []string{"web-7d4f8b96c5-4xk8p", "web-7d4f8b96c5-h7z2m", "web-7d4f8b96c5-vq9tn"} {
		all = append(all, container{pod, "web", 0, rollout, web(190)}, container{pod, "proxy", 0, rollout, proxy})
	}
	for _, pod := range []string{"web-5c9d7f6b48-8fj6w", "web-5c9d7f6b48-kd5rb", "web-5c9d7f6b48-z2ncx"} {
		all = append(all, container{pod, "web", rollout, whole, web(165)}, container{pod, "proxy", rollout, whole, proxy})
	}
	for _, pod := range []string{"checkout-6b8c5d9f74-9m2xv", "checkout-6b8c5d9f74-tg4wl"} {
		all = append(all, container{pod, "checkout", 0, whole, checkout})
	}
	for _, pod := range []string{"agent-7hqzs", "agent-m4v9k"} {
		all = append(all, container{pod, "agent", 0, whole, agent})
	}
	for i, pod := range []string{"db-0", "db-1"} {
		all = append(all, container{pod, "db", 0, whole, db(i == 0)})
	}
	for d := range int64(days) {
		from := d*day + 2*60*60
		minutes := (start + from) / 60 // A run's pods carry the time that it was due at.
		pod := fmt.Sprintf("report-%d-%s", minutes, suffix(d))
		all = append(all, container{pod, "report", from, from + 40*60 + d%3*step, report})
	}
	return all
}

// web is a Go service: CPU follows load, and memory the requests in flight.
func web(idle int64) func(moment) usage {
	return func(at moment) usage {
		return usage{40 + at.load*52/100 + at.noise(20+at.load/15), idle + at.load/14 + at.noise(6)}
	}
}

// proxy is a sidecar, small and steady.
func proxy(at moment) usage {
	return usage{6 + at.load*35/1000 + at.noise(4), 42 + at.load/150 + at.noise(2)}
}

// checkout is a JVM with far more than it needs. It is busy when it starts, and
// its heap grows to what a collection leaves.
func checkout(at moment) usage {
	heap := 1180 + (at.age/step*7)%260
	if at.age < 2*step {
		return usage{1650 + at.noise(80), 640 + at.age/step*300}
	}
	return usage{70 + at.load*31/100 + at.noise(25), heap + at.noise(20)}
}

// db keeps its cache in memory, more than it asks for. Its primary makes a
// backup every night.
func db(primary bool) func(moment) usage {
	return func(at moment) usage {
		u := usage{160 + at.load*30/100 + at.noise(30), 2760 + min(at.age/day*45, 320) + at.noise(25)}
		if hour := at.second % day / 3600; primary && hour == 3 {
			u.milliCores += 700
			u.mebibytes += 180
		}
		return u
	}
}

// agent is on every node and hardly does anything.
func agent(at moment) usage {
	return usage{22 + at.load/100 + at.noise(5), 84 + at.noise(4)}
}

// report runs for less than an hour a night, and needs more every time.
func report(at moment) usage {
	return usage{1080 + at.noise(140), 430 + min(at.age/step*30, 180) + at.second/day*6 + at.noise(15)}
}

// hours are thousandths of the weekday peak, on the hour.
var hours = [24]int64{180, 140, 120, 110, 120, 160, 260, 420, 600, 740, 840, 920, 970, 1000, 980, 950, 920, 900, 880, 820, 700, 520, 360, 250}

// load is the shop's load at a time, in thousandths of the weekday peak.
func load(second int64) int64 {
	hour, rest := second%day/3600, second%3600
	now, next := hours[hour], hours[(hour+1)%24]
	level := now + (next-now)*rest/3600
	if weekday := second / day % 7; weekday >= 5 {
		level = level * 62 / 100
	}
	return level
}

// rows is the container's history as CSV.
func (c container) rows() string {
	random := randomFor(c.pod + "/" + c.name)
	noise := func(n int64) int64 { return uniform(random, n) + uniform(random, n) - n }
	var b strings.Builder
	b.WriteString("timestamp_seconds,cpu_cores,memory_bytes\n")
	for second := c.from; second < c.to; second += step {
		u := c.usage(moment{second: second, age: second - c.from, load: load(second), noise: noise})
		milli := max(u.milliCores, 1)
		fmt.Fprintf(&b, "%d,%d.%03d,%d\n", start+second, milli/1000, milli%1000, max(u.mebibytes, 1)*mib)
	}
	return b.String()
}

// randomFor is a generator that depends on the name alone.
func randomFor(name string) *rand.PCG {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // A hash takes everything.
	return rand.NewPCG(h.Sum64(), 1)
}

// uniform returns a number from 0 to n.
func uniform(random *rand.PCG, n int64) int64 { return int64((random.Uint64() >> 33) % uint64(n+1)) }

// suffix is the end of the name of a pod, as the API server makes it up.
func suffix(n int64) string {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	random := randomFor("suffix " + strconv.FormatInt(n, 10))
	b := make([]byte, 5)
	for i := range b {
		b[i] = alphabet[uniform(random, int64(len(alphabet)-1))]
	}
	return string(b)
}
