package history

import (
	"fmt"
	"slices"
	"testing"
)

// minuteSamples feeds each five-minute sample five times, a minute apart.
func minuteSamples(tr trace, days int) (ends []int64, cpu, memory []float64) {
	n := min(len(tr.end), days*288)
	for i := range n {
		for m := range int64(5) {
			ends = append(ends, tr.end[i]-300+(m+1)*60)
			cpu = append(cpu, tr.cpu[i])
			if len(tr.memory) > i {
				memory = append(memory, tr.memory[i])
			}
		}
	}
	return ends, cpu, memory
}

func BenchmarkSketchAdd(b *testing.B) {
	all := traces(b)
	type feed struct {
		ends   []int64
		values []float64
	}
	var feeds []feed
	for _, tr := range all {
		ends, cpu, memory := minuteSamples(tr, 8)
		feeds = append(feeds, feed{ends, cpu})
		if len(memory) == len(ends) {
			feeds = append(feeds, feed{ends, memory})
		}
	}
	b.ReportAllocs()
	done := 0
	for b.Loop() {
		f := feeds[done%len(feeds)]
		done++
		var s Sketch
		for i, end := range f.ends {
			s.Add(end, f.values[i])
		}
	}
	samples := 0
	for i := range done {
		samples += len(feeds[i%len(feeds)].ends)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(samples), "ns/sample")
}

// BenchmarkRetained reports the bytes that one container's CPU and memory
// sketches keep after eight days of one-minute samples.
func BenchmarkRetained(b *testing.B) {
	all := traces(b)
	var bytes []int
	for b.Loop() {
		bytes = bytes[:0]
		for _, tr := range all {
			ends, cpu, memory := minuteSamples(tr, 8)
			if len(memory) < len(ends) {
				continue
			}
			c := NewContainer()
			for i, end := range ends {
				c.CPU.Add(end, cpu[i])
				c.Memory.Add(end, memory[i])
			}
			c.Compact()
			bytes = append(bytes, c.Bytes())
		}
	}
	slices.Sort(bytes)
	for _, p := range []int{50, 95, 100} {
		b.ReportMetric(float64(bytes[(len(bytes)-1)*p/100]), fmt.Sprintf("p%d-bytes/container", p))
	}
}

func BenchmarkDistribution(b *testing.B) {
	ends, cpu, _ := minuteSamples(traces(b)[0], 8)
	var s Sketch
	for i, end := range ends {
		s.Add(end, cpu[i])
	}
	s.Compact()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Distribution().Quantile(0.95); err != nil {
			b.Fatal(err)
		}
	}
}
