package history

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Field case B08, second input: a stored value that no node can hold.
func TestB08AStoredValueAboveTheCeilingIsDropped(t *testing.T) {
	c := NewContainer()
	for i := range int64(288) {
		value := 1595.0 * mi
		if i == 100 || i == 287 { // One that is encoded, and a recent one.
			value = 1174275820239
		}
		c.Memory.Add(end.Unix()+300*i, value)
		c.AddCPU(end.Unix()+300*i, 0.5, -1)
	}
	c.Compact()
	c.DropAbove(Ceiling{CPUCores: 32, MemoryBytes: 128 << 30})
	if peak, _ := c.Memory.Peak(); !near(peak, 1595*mi) {
		t.Errorf("the peak is %v Mi, want 1595", peak/mi)
	}
	if c.Dropped != (Dropped{Implausible: 2}) || c.Memory.Count() != 286 || c.CPU.Count() != 288 {
		t.Errorf("dropped %+v, %d and %d samples are left, want 2 implausible, 286 and 288", c.Dropped, c.Memory.Count(), c.CPU.Count())
	}
	c.DropAbove(Ceiling{MemoryBytes: mi})
	if c.Memory.Count() != 0 || !c.Memory.Last().IsZero() {
		t.Errorf("%d samples are left, none is below the ceiling", c.Memory.Count())
	}
}

func TestWhatIsDroppedIsWhatIsAboveTheCeiling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0, 100), 1, 900).Draw(t, "values")
		most := rapid.Float64Range(1, 100).Draw(t, "most")
		c := NewContainer()
		kept := 0
		for i, v := range values {
			if math.Abs(v-most) < 0.03*most {
				v = 0 // Which side of the ceiling it is on is not exact.
			}
			if v < most {
				kept++
			}
			c.AddCPU(end.Unix()+300*int64(i), v, -1)
		}
		c.DropAbove(Ceiling{CPUCores: most})
		d := c.CPU.Distribution()
		if c.CPU.Count() != kept || int(d.Total) != kept || c.Dropped.Implausible != len(values)-kept || d.Peak > most {
			t.Errorf("%d samples up to %v are left and %d dropped, want %d below %v and %d",
				c.CPU.Count(), d.Peak, c.Dropped.Implausible, kept, most, len(values)-kept)
		}
		again := NewContainer()
		if err := again.UnmarshalBinary(stored(t, c)); err != nil {
			t.Error(err)
		}
	})
}

func TestFineSamplesAreFoldedToTheStep(t *testing.T) {
	q := hour(0)
	q.Step = absorbStep
	begin := end.Unix() - 600
	u := collect(q, func(c *Collector) {
		ends := []int64{begin + 60, begin + 120, begin + 180, begin + 300, begin + 301, begin + 420}
		c.AddFine(0, "web-0", "app", MetricCPU, ends, []float64{1, 2, -0.5, 3, 7, 9})
		c.AddFine(0, "web-0", "app", MetricMemory, ends, []float64{1, 2, 9, 3, 7, 5})
	})
	app := u.Containers["app"]
	cpu, memory := app.CPU.Distribution(), app.Memory.Distribution()
	if cpu.Total != 2 || !near(cpu.Values[0], 2) || !near(cpu.Values[1], 8) {
		t.Errorf("CPU is %v, want the means 2 and 8", cpu.Values)
	}
	if memory.Total != 2 || !near(memory.Values[0], 7) || !near(memory.Values[1], 9) {
		t.Errorf("memory is %v, want the peaks 7 and 9", memory.Values)
	}
	if app.Dropped != (Dropped{Invalid: 1}) || !app.CPU.Last().Equal(end) {
		t.Errorf("dropped %+v, the last step ends %s, want 1 invalid and %s", app.Dropped, app.CPU.Last(), end)
	}
}
