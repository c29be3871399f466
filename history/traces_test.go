package history

import (
	"bufio"
	"compress/gzip"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// trace is a recorded series; memory is empty where the source has none.
type trace struct {
	name        string
	end         []int64
	cpu, memory []float64
}

// traces reads the recorded series beside the checkout, or generates a few
// where they are not there.
func traces(t testing.TB) []trace {
	const root = "../../shared/traces"
	var all []trace
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "extra":
			return filepath.SkipDir
		case !d.IsDir() && strings.Contains(d.Name(), ".csv") && d.Name() != "manifest.csv":
			all = append(all, readTrace(t, path))
		}
		return nil
	})
	if err != nil {
		t.Logf("no recorded traces (%v): using generated ones", err)
		return generatedTraces()
	}
	return all
}

func readTrace(t testing.TB, path string) trace {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	tr := trace{name: filepath.Base(path)}
	lines := bufio.NewScanner(r)
	lines.Scan() // The header.
	for lines.Scan() {
		cells := strings.Split(lines.Text(), ",")
		at, err := strconv.ParseInt(cells[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		cpu, err := strconv.ParseFloat(cells[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		tr.end = append(tr.end, at+300)
		tr.cpu = append(tr.cpu, cpu)
		if len(cells) > 2 && cells[2] != "" {
			memory, err := strconv.ParseFloat(cells[2], 64)
			if err != nil {
				t.Fatal(err)
			}
			tr.memory = append(tr.memory, memory)
		}
	}
	return tr
}

func generatedTraces() []trace {
	var all []trace
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		tr := trace{name: "generated-" + strconv.Itoa(int(seed))}
		level := math.Exp(r.NormFloat64())
		for i := range int64(30 * 288) {
			daily := 1 + 0.5*math.Sin(2*math.Pi*float64(i)/288)
			tr.end = append(tr.end, 1_700_000_000+(i+1)*300)
			tr.cpu = append(tr.cpu, level*daily*math.Exp(0.3*r.NormFloat64()))
			tr.memory = append(tr.memory, level*1e9*(1+0.1*daily+0.02*r.NormFloat64()))
		}
		all = append(all, tr)
	}
	return all
}
