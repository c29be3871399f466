package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The provider asks for the present; the data ends earlier.
func TestHistoryEndsWhereTheDataDoes(t *testing.T) {
	now := time.Date(2026, 3, 11, 0, 0, 0, 0, time.UTC)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, to, value := now.Unix(), now.Unix(), "1"
		if r.FormValue("start") != "" {
			from, to = seconds(t, r.FormValue("start")), seconds(t, r.FormValue("end"))
			if r.FormValue("step") != "3600" {
				t.Errorf("step %s, want 3600", r.FormValue("step"))
			}
		}
		// A little time passes between the start of the load and a query.
		if late := to - now.Unix(); late < 0 || late > 60 {
			t.Errorf("%s ends %d s after the data", r.FormValue("query"), late)
		}
		if strings.HasPrefix(r.FormValue("query"), "container_memory") {
			value = "1e9"
		}
		var samples []string
		for at := from; at <= to; at += 3600 {
			samples = append(samples, fmt.Sprintf(`[%d,"%s"]`, at, value))
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[
			{"metric":{"namespace":"team","pod":"web-7d4b9c6f5d-gbcdf","container":"app","label_app":"web"},"values":[%s]}]}}`,
			strings.Join(samples, ","))
	}))
	defer server.Close()

	l, err := load(server.URL, "1h", 8, now)
	if err != nil {
		t.Fatal(err)
	}
	if l.Containers != 1 || l.CPUSamples != 8*24+1 {
		t.Errorf("%d containers and %d samples, want 1 and 193", l.Containers, l.CPUSamples)
	}
}

func seconds(t *testing.T, text string) int64 {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Errorf("a query has the time %q", text)
	}
	return v
}
