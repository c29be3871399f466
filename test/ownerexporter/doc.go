// Package ownerexporter is a stand-in for kube-state-metrics in the test bed. It
// is not kube-state-metrics: it serves the few series about pods, their owners
// and how their containers last ended that the project reads, under the names
// and labels which the documentation of kube-state-metrics gives them. What a
// test shows with it holds for the real program as far as that documentation
// does.
package ownerexporter
