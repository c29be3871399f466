package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestSourcesThatContradictThemselves(t *testing.T) {
	dir := folder(t, map[string]string{
		"csv/shop/db-0/app.csv": csv(1, 1<<20),
		"text/all.om":           openMetrics(generatedRecordings()[0].series("db-0")),
		"empty/note.txt":        "nothing",
		"server.yaml":           "url: http://localhost:9\n",
		"names.yaml":            "labels: {pod: pod_name}\n",
		"wrong.yaml":            "remoteRead: Sometimes\nurl: http://localhost:9\n",
		"unknown.yaml":          "address: http://localhost:9\n",
	})
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, tc := range map[string]struct {
		flags []string
		want  string
	}{
		"a folder and a server":              {[]string{"--history", at("csv"), "--prometheus", "http://localhost:9"}, "write one of them"},
		"text and a server in a file":        {[]string{"--history", at("text"), "--prometheus-config", at("server.yaml")}, "leave one of them out"},
		"CSV and names of series":            {[]string{"--history", at("csv"), "--prometheus-config", at("names.yaml")}, "folder of CSV files"},
		"CSV and a matcher":                  {[]string{"--history", at("csv"), "--matcher", `cluster="a"`}, "folder of CSV files"},
		"text and a matcher that is none":    {[]string{"--history", at("text"), "--matcher", "cluster"}, "is not a matcher"},
		"text without what a matcher wants":  {[]string{"--history", at("text"), "--matcher", `cluster="a"`}, "0 workloads were read"},
		"a folder of nothing":                {[]string{"--history", at("empty")}, "<namespace>/<pod>/<container>.csv"},
		"no such folder":                     {[]string{"--history", at("nowhere")}, "nowhere"},
		"a word that is none of the setting": {[]string{"--prometheus-config", at("wrong.yaml")}, "remoteRead"},
		"a setting that there is not":        {[]string{"--prometheus-config", at("unknown.yaml")}, "address"},
	} {
		t.Run(name, func(t *testing.T) {
			r := execute(t, "", append([]string{"recommend"}, tc.flags...)...)
			if r.code != exitError || r.out != "" || !strings.Contains(r.err, tc.want) {
				t.Errorf("%+v, want a message with %q", r, tc.want)
			}
		})
	}
}
