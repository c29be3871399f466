package main

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/plimsoll-dev/plimsoll/test/load/wire"
)

// handler serves the program's state. exit ends the program; tests pass their own.
func handler(s *state, exit func(int)) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+wire.ReportPath, func(w http.ResponseWriter, _ *http.Request) { writeReport(w, s) })
	mux.HandleFunc("POST "+wire.ChangePath, func(w http.ResponseWriter, r *http.Request) { change(w, r, s) })
	mux.HandleFunc("GET "+wire.ReadyPath, func(w http.ResponseWriter, _ *http.Request) {
		if !s.ready(time.Now()) {
			http.Error(w, "not ready yet", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("POST "+wire.ExitPath, func(_ http.ResponseWriter, r *http.Request) {
		code, err := strconv.Atoi(r.URL.Query().Get("code"))
		if err != nil {
			code = 1
		}
		exit(code)
	})
	return mux
}

func change(w http.ResponseWriter, r *http.Request, s *state) {
	var c wire.Change
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		http.Error(w, "reading the change: "+err.Error(), http.StatusBadRequest)
		return
	}
	if err := s.change(c); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	writeReport(w, s)
}

func writeReport(w http.ResponseWriter, s *state) {
	w.Header().Set("Content-Type", "application/json")
	// A caller that went away needs no answer.
	_ = json.NewEncoder(w).Encode(s.report(time.Now()))
}
