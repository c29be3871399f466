package prometheus

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/plimsoll-dev/plimsoll/history"
)

// canned is a round tripper that answers everything with one body.
type canned struct {
	status int
	body   []byte
}

func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: c.status, Header: http.Header{}, ContentLength: -1,
		Body: io.NopCloser(bytes.NewReader(c.body)),
	}, nil
}

// decode takes a body the whole way from the wire into a collector.
func decode(tb testing.TB, status int, body []byte) (history.Usage, note, error) {
	s := DefaultSettings()
	s.URL, s.MaxAttempts = "http://canned", 1
	source, err := New(s)
	if err != nil {
		tb.Fatal(err)
	}
	inner, err := api.NewClient(api.Config{Address: s.URL, RoundTripper: canned{status, body}})
	if err != nil {
		tb.Fatal(err)
	}
	source.client.api = v1.NewAPI(&patient{next: inner, settings: source.settings, pulse: new(pulse)})
	q := query(24*time.Hour, 5*time.Minute, statefulSet("web"))
	l := newLoad(source, q)
	l.queries = source.settings.queries(time.Minute, q.Step)
	l.owners = history.NewOwners([]history.WorkloadKey{q.Workloads[0].WorkloadKey})
	g := newGatherer(l, l.batches[0])
	uq := l.queries.usageQueries()[1]
	answer, n, err := l.engine.rangeQuery(context.Background(), "memory", l.chunks[0])
	if err == nil {
		g.add(uq, piece{l.batches[0], l.chunks[0]}, answer)
		g.collector.EndChunk()
	}
	return g.collector.Usage()[0], n, err
}

// FuzzAnswer feeds bodies as they come from the wire.
func FuzzAnswer(f *testing.F) {
	at := now.Add(-time.Hour).Unix()
	whole := `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"namespace":"shop","pod":"web-0","container":"app"},"values":[[` +
		jsonInt(at) + `,"1048576"]]}]}}`
	for _, seed := range []string{
		whole,
		`{"status":"success","isPartial":true,"data":{"resultType":"matrix","result":[]}}`,
		`{"status":"success","isPartial" : true ,"data":{"resultType":"matrix","result":[{"metric":{"isPartial":"true"},"values":[]}]}}`,
		`{"status":"success","data":{"resultType":"matrix","result":[null]}}`,
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"namespace":"shop","pod":"web-0","container":"app"},"values":[[1,null]]}]}}`,
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"namespace":"shop","pod":"web-0","container":"app"},"values":[[1e300,"NaN"],[-1,"-Inf"]]}]}}`,
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"1"]}]}}`,
		`{"status":"success","data":null}`, `{"data":`, `null`, `[]`, ``, `{}`, `<html>`,
		`{"status":"error","errorType":"timeout","error":"x"}`,
		`{"status":"success","warnings":["w"],"infos":["i"],"data":{"resultType":"matrix","result":[]}}`,
	} {
		f.Add(200, []byte(seed))
		f.Add(422, []byte(seed))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 200 || status > 599 {
			return
		}
		u, n, err := decode(t, status, body)
		if err != nil && (len(u.Containers) > 0 || err.Error() == "") {
			t.Errorf("an answer that failed (%v) gives usage", err)
		}
		if err == nil && (status/100 != 2 || !json.Valid(body)) {
			t.Errorf("a body that is not whole, or status %d, is taken for an answer", status)
		}
		if err == nil && partialInJSON(body) && len(n) == 0 {
			t.Error("a partial answer is taken for whole")
		}
		for name, c := range u.Containers {
			if name == "" || name == "POD" {
				t.Errorf("there is a container %q", name)
			}
			if p, ok := c.Memory.Peak(); ok && (math.IsNaN(p) || math.IsInf(p, 0) || p < 0) {
				t.Errorf("the peak is %v", p)
			}
		}
	})
}

// FuzzMatrix holds our decoder to the library's: what ours takes, the library
// takes, and reads the same.
func FuzzMatrix(f *testing.F) {
	row := func(values string) string {
		return `{"metric":{"pod":"web-0","container":"app"},"values":[` + values + `]}`
	}
	for _, result := range []string{
		"", row(`[1700000000,"0.25"]`), row(`[0,"NaN"],[1,"+Inf"],[2,"-Inf"],[3,"1e-9"],[4,"0x1p-2"],[5,"1_0"],[6,""]`),
		row(`[01,"1"]`), row(`[-1,"1"]`), row(`[1.5,"1"]`), row(`[1,1]`), row(`[1,"1"],`), row(`[1,"1","2"]`), row(``), row(`[1,null]`),
		row(`[1,"1"]`) + "," + row(`[9999999999999,"1"]`), `{"metric":{},"values":[[1,"1"]]}`, `{"metric":{"a":"\\u00e9"},"values":[[1,"1"]]}`,
		`{"metric":{"a":"é"},"values":[[1,"1"]]}`, `{"metric":{"a":"1","a":"2"},"values":[[1,"1"]]}`, `null`, ` ` + row(`[1,"1"]`),
		`{"metric":{"a":"b"},"histograms":[[1,{"count":"1","sum":"1","buckets":[]}]]}`, `{"values":[[1,"1"]],"metric":{"a":"b"}}`,
	} {
		f.Add([]byte(result), []byte(`]}}`))
		f.Add([]byte(result), []byte(`]},"warnings":["w"]}`))
	}
	f.Fuzz(func(t *testing.T, result, tail []byte) {
		body := slices.Concat([]byte(`{"status":"success",`+matrixStart), result, tail)
		ours, envelope, ok := cutMatrix(body, 4)
		if !ok || bytes.Contains(envelope[len(matrixStart):], []byte(`"data"`)) || bytes.Count(bytes.ToLower(envelope), []byte("result")) > 2 {
			return // A name given twice: servers do not, and the last would count.
		}
		library := func(body []byte) (model.Matrix, error) {
			inner, err := api.NewClient(api.Config{Address: "http://canned", RoundTripper: canned{200, body}})
			if err != nil {
				t.Fatal(err)
			}
			v, _, _, err := v1.NewAPI(inner).QueryRange(t.Context(), "x", v1.Range{Step: time.Second})
			m, _ := v.(model.Matrix)
			return m, err
		}
		if _, err := library(envelope); err != nil {
			return // The library refuses what is left, and so the answer.
		}
		want, err := library(body)
		if err != nil {
			t.Fatalf("the library refuses what we take: %v", err)
		}
		equal := cmp.Options{cmp.AllowUnexported(series{}), cmpopts.EquateNaNs(), cmpopts.EquateEmpty()}
		if diff := cmp.Diff(seriesOf(want), ours, equal); diff != "" {
			t.Errorf("series (-library +ours):\n%s", diff)
		}
	})
}

func jsonInt(v int64) string {
	b, _ := json.Marshal(v) // An integer always can be written.
	return string(b)
}

// partialInJSON reads what isPartial looks for, the slow way.
func partialInJSON(body []byte) bool {
	var answer struct {
		IsPartial any `json:"isPartial"`
	}
	// Other spellings of the name are not VictoriaMetrics'.
	if !bytes.Contains(body, []byte(`"isPartial"`)) || json.Unmarshal(body, &answer) != nil {
		return false
	}
	partial, ok := answer.IsPartial.(bool)
	return ok && partial && !bytes.Contains(bytes.ToLower(bytes.ReplaceAll(body, []byte(`"isPartial"`), nil)), []byte("ispartial"))
}

// An answer that breaks off anywhere is never taken for whole.
func TestNoPrefixOfAnAnswerIsTakenForWhole(t *testing.T) {
	body := []byte(`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"namespace":"shop","pod":"web-0","container":"app"},"values":[[` +
		jsonInt(now.Unix()) + `,"1048576"]]}]}}`)
	if u, _, err := decode(t, 200, body); err != nil || peak(t, u, "app") != mi {
		t.Fatalf("the whole answer gives %v, %v", u, err)
	}
	for n := range body {
		if u, _, err := decode(t, 200, body[:n]); err == nil || len(u.Containers) > 0 {
			t.Errorf("the first %d of %d bytes are taken for an answer", n, len(body))
		}
	}
}

func TestPartialFlag(t *testing.T) {
	for body, want := range map[string]bool{
		`{"status":"success","isPartial":true,"data":{}}`:            true,
		"{\"isPartial\" :\n\ttrue}":                                  true,
		`{"isPartial":false}`:                                        false,
		`{"data":{"metric":{"isPartial":"true"}}}`:                   false,
		`{"data":{"metric":{"x":"\"isPartial\":true"}}}`:             false,
		`{"data":{"metric":{"isPartial":"x"}},"isPartial":true}`:     true,
		`{"isPartial":false,"x":"isPartial","y":"true","z":"\"a\""}`: false,
		`{"isPartial"`:  false,
		`{"isPartial":`: false,
		``:              false,
	} {
		if got := isPartial([]byte(body)); got != want {
			t.Errorf("isPartial of %s = %v, want %v", body, got, want)
		}
	}
}
