package history

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"pgregory.net/rapid"
)

var (
	_ encoding.BinaryAppender    = (*Container)(nil)
	_ encoding.BinaryUnmarshaler = (*Container)(nil)
)

func stored(t interface{ Fatal(...any) }, c *Container) []byte {
	data, err := c.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestWhatIsStoredComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecorded(t)
		u := r.load(0, r.steps, nil)
		if rapid.Bool().Draw(t, "retained") {
			u.Retain(r.start.Add(absorbStep * 288))
		}
		for name, c := range u.Containers {
			data := stored(t, c)
			got := &Container{}
			if err := got.UnmarshalBinary(data); err != nil {
				t.Fatal(err)
			}
			if diff := differences(map[string]*Container{name: c}, map[string]*Container{name: got}); diff != "" {
				t.Errorf("(-stored +read):\n%s", diff)
			}
			if again := stored(t, got); !bytes.Equal(data, again) {
				t.Error("stored again it differs")
			}
			// What was read goes on like what was stored.
			later := r.load(r.steps-1, r.steps, NewTape).Containers["app"]
			if later != nil {
				c.Absorb(later)
				got.Absorb(later)
			}
			if diff := differences(map[string]*Container{name: c}, map[string]*Container{name: got}); diff != "" {
				t.Errorf("after more samples (-stored +read):\n%s", diff)
			}
		}
	})
}

// storedExample is a container with something of everything.
func storedExample() *Container {
	c := NewContainer()
	for i := range int64(1000) {
		share := -1.0
		if i%3 == 0 {
			share = float64(i%7) / 10
		}
		c.AddCPU(end.Unix()+300*i, float64(i%13)/7, share)
		c.Memory.Add(end.Unix()+300*i, float64(1<<20)*float64(i%29))
	}
	c.tallies.day(20_000).dropped = Dropped{1, 2}
	c.tallies.day(20_000).cpuPressure = 0.2
	c.AddOOMKill(OOMKill{At: end, Pod: "web-0", LimitBytes: 1 << 30})
	c.AddOOMKill(OOMKill{At: end, Pod: "web-1", UsedBytes: 1 << 30, Place: PlacePodStatus})
	c.countUp()
	c.Compact()
	return c
}

func TestDamageIsAnError(t *testing.T) {
	data := stored(t, storedExample())
	for i := range data {
		damaged := bytes.Clone(data)
		damaged[i] ^= 1 << (i % 8)
		c := NewContainer()
		c.Masked = 7
		if err := c.UnmarshalBinary(damaged); err == nil {
			t.Fatalf("a changed bit in byte %d of %d is read", i, len(data))
		}
		if c.Masked != 7 {
			t.Fatalf("a changed bit in byte %d changed the container", i)
		}
		if err := c.UnmarshalBinary(data[:i]); err == nil {
			t.Fatalf("the first %d of %d bytes are read", i, len(data))
		}
	}
	if err := NewContainer().UnmarshalBinary(append(bytes.Clone(data), 0)); err == nil {
		t.Error("a byte too much is read")
	}
}

func TestAWorkloadComesBackWithItsPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecorded(t)
		u := r.load(0, r.steps, nil)
		if rapid.Bool().Draw(t, "settled") {
			u.Compact()
		}
		data, err := u.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		var got Usage
		if err := got.UnmarshalBinary(data); err != nil {
			t.Fatal(err)
		}
		if got.Workload != u.Workload || got.Pods != u.Pods {
			t.Errorf("%s with %+v came back as %s with %+v", u.Workload, u.Pods, got.Workload, got.Pods)
		}
		if diff := differences(u.Containers, got.Containers); diff != "" {
			t.Errorf("(-stored +read):\n%s", diff)
		}
		cut := rapid.IntRange(0, len(data)-1).Draw(t, "cut")
		if err := got.UnmarshalBinary(data[:cut]); err == nil {
			t.Errorf("the first %d of %d bytes are read", cut, len(data))
		}
	})
}

// FuzzUnmarshalUsage is FuzzUnmarshal for a whole workload.
func FuzzUnmarshalUsage(f *testing.F) {
	u := Usage{Workload: web, Containers: map[string]*Container{"app": storedExample(), "side": NewContainer()}}
	u.log = newPodLog(map[string]int64{"web-0": end.Unix(), "web-1": 300}, end.Unix(), 600)
	data, err := u.AppendBinary(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data[1 : len(data)-checksumLength])
	f.Fuzz(func(_ *testing.T, content []byte) {
		data := append([]byte{storedVersion}, content...)
		data = binary.BigEndian.AppendUint32(data, crc32.Checksum(data, castagnoli))
		var got Usage
		if err := got.UnmarshalBinary(data); err != nil {
			return
		}
		got.Absorb(u, nil)
		got.Retain(end)
	})
}

// FuzzUnmarshal gives bytes a right checksum, so that what is behind it is
// reached: it is read back as it was, or refused, and can be worked with.
func FuzzUnmarshal(f *testing.F) {
	for _, c := range []*Container{NewContainer(), storedExample()} {
		data := stored(f, c)
		f.Add(data[1 : len(data)-checksumLength])
	}
	// A day whose first bucket is no step from none.
	f.Add([]byte{0, 1, 2, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, distEscape << countBits, 0, 0, 0, 0})
	more := storedExample()
	f.Fuzz(func(t *testing.T, content []byte) {
		data := append([]byte{storedVersion}, content...)
		data = binary.BigEndian.AppendUint32(data, crc32.Checksum(data, castagnoli))
		c := NewContainer()
		if err := c.UnmarshalBinary(data); err != nil {
			return
		}
		if again := NewContainer(); again.UnmarshalBinary(stored(t, c)) != nil {
			t.Error("what was read cannot be stored and read again")
		}
		for _, s := range []*Sketch{&c.CPU, &c.Memory, c.Demand()} {
			if d := s.Distribution(); int(d.Total) != s.Count() {
				t.Errorf("%d samples, and a distribution of %v", s.Count(), d.Total)
			}
		}
		c.Absorb(more)
		c.Retain(end)
		c.Compact()
	})
}

func benchmarkContainer(b *testing.B) *Container {
	tr := traces(b)[0]
	ends, cpu, _ := minuteSamples(tr, 8)
	c := NewContainer()
	for i, end := range ends {
		c.AddCPU(end, cpu[i], -1)
		c.Memory.Add(end, cpu[i]*(1<<30))
	}
	c.Compact()
	return c
}

func BenchmarkAppendBinary(b *testing.B) {
	c := benchmarkContainer(b)
	var data []byte
	b.ReportAllocs()
	for b.Loop() {
		data, _ = c.AppendBinary(data[:0])
	}
	b.ReportMetric(float64(len(data)), "stored-bytes")
	b.ReportMetric(float64(c.Bytes()), "held-bytes")
}

func BenchmarkUnmarshalBinary(b *testing.B) {
	data := stored(b, benchmarkContainer(b))
	b.ReportAllocs()
	for b.Loop() {
		if err := new(Container).UnmarshalBinary(data); err != nil {
			b.Fatal(err)
		}
	}
}
