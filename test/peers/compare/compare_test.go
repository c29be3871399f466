package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTablesHaveAllSetsAndStrategies(t *testing.T) {
	folder := t.TempDir()
	for _, s := range sets {
		// Names of both halves.
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			writeTrace(t, filepath.Join(folder, s.folder, name+".csv"))
		}
	}
	all, err := Run(t.Context(), folder, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var tables, text bytes.Buffer
	if err := WriteTables(&tables, all); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"### google-borg-2019, all: 6 of 6 series", "### google-borg-2019, replicas: ",
		"### bitbrains-rnd-2013-08, reported: ", "### azure-vm-2017, tuned: ", "### nab-aws-cloudwatch, all: ",
		"| vpa (own code) |", "| vpa-recreate (own code) |", "| vpa |", "| Balanced |",
	} {
		if !strings.Contains(tables.String(), want) {
			t.Errorf("the tables have no %q:\n%s", want, &tables)
		}
	}
	if err := WriteJSON(&text, all); err != nil {
		t.Fatal(err)
	}
	var read []Set
	if err := json.Unmarshal(text.Bytes(), &read); err != nil {
		t.Fatal(err)
	}
	series := 0
	for _, s := range read {
		if s.Folder == "azure-vm-2017" && s.Part != All {
			series += s.Scored
		}
	}
	if series != 6 {
		t.Errorf("the halves of a set have %d series, want 6", series)
	}
}

// writeTrace writes ten days at half an hour.
func writeTrace(t *testing.T, path string) {
	var text strings.Builder
	text.WriteString("timestamp_seconds,cpu_cores,memory_bytes\n")
	for i := range 10 * 48 {
		load := 1 + 0.5*math.Sin(2*math.Pi*float64(i)/48)
		fmt.Fprintf(&text, "%d,%.4f,%.0f\n", 1_700_000_000+i*1800, load, load*1e9)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
