package verdict

import (
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// goVariables are read by the Go runtime; AUTOMEMLIMIT by a package that sets
// GOMEMLIMIT from the cgroup at start.
var goVariables = []string{"GOMAXPROCS", "GOMEMLIMIT", "GODEBUG", "GOGC", "AUTOMEMLIMIT"}

func (p *process) judgeGo(r *Result) {
	p.judgeGoCPU(r)
	p.judgeGoMemory(r)
}

// judgeGoCPU asks in the runtime's own order: the variable, then the debug
// settings, then what the version does by itself.
func (p *process) judgeGoCPU(r *Result) {
	if p.goMaxProcs(r) || p.goDebug(r) || p.goObserved(r) {
		return
	}
	p.goVersion(r)
}

// goMaxProcs judges by the variable GOMAXPROCS. As in the runtime, what is not
// a number above zero does not count.
func (p *process) goMaxProcs(r *Result) bool {
	v, ok := p.env.lookup("GOMAXPROCS")
	if !ok {
		return false
	}
	if v.origin != literal {
		p.noteEnv("GOMAXPROCS", v, "")
		r.CPU = StartOnly
		if v.origin == cpuLimit && !v.scaled {
			r.Counting = CountCeil
		}
		p.advise(corev1.ResourceCPU, "remove env GOMAXPROCS (from %s); built with go 1.25 or later in go.mod, "+
			"the process follows its CPU limit", v.from)
		return true
	}
	n, err := strconv.ParseInt(v.text, 10, 32)
	if err != nil || n <= 0 {
		p.note("env GOMAXPROCS=%s is not a number above zero, and does not count", quote(v.text))
		return false
	}
	p.noteEnv("GOMAXPROCS", v, strconv.FormatInt(n, 10))
	r.CPU, r.Procs = Pinned, int(n)
	p.advise(corev1.ResourceCPU, "remove env GOMAXPROCS=%d; built with go 1.25 or later in go.mod, "+
		"the process follows its CPU limit", n)
	return true
}

// goDebug judges by GODEBUG. With containermaxprocs=0 the runtime never looks
// at the limit, neither later nor at start: that is Go before 1.25, and no
// restart would change it.
func (p *process) goDebug(r *Result) bool {
	v, ok := p.env.lookup("GODEBUG")
	if !ok {
		return false
	}
	if v.origin != literal {
		p.noteEnv("GODEBUG", v, "")
		r.CPU, r.Counting = StartOnly, CountGo
		p.advise(corev1.ResourceCPU, "write env GODEBUG (from %s) as a literal, so that it can be seen to leave updatemaxprocs alone", v.from)
		return true
	}
	switch {
	case debugSetting(v.text, "containermaxprocs") == "0":
		p.noteEnv("GODEBUG", v, "containermaxprocs=0")
		r.CPU = KernelOnly
		return true
	case debugSetting(v.text, "updatemaxprocs") == "0":
		p.noteEnv("GODEBUG", v, "updatemaxprocs=0")
		r.CPU, r.Counting = StartOnly, CountGo
		p.advise(corev1.ResourceCPU, "remove updatemaxprocs=0 from env GODEBUG")
		return true
	}
	return false
}

// debugSetting is the value of a key in GODEBUG; the last one counts.
func debugSetting(text, key string) string {
	var last string
	for setting := range strings.SplitSeq(text, ",") {
		if name, v, _ := strings.Cut(setting, "="); name == key {
			last = v
		}
	}
	return last
}

// goObserved judges by the GOMAXPROCS that the process reports, where it
// differs from what the runtime would have taken from the limit.
func (p *process) goObserved(r *Result) bool {
	m := p.in.Metrics
	limit := m.CPULimitMilli
	if limit <= 0 {
		limit = p.container.Resources.Limits.Cpu().MilliValue()
	}
	expected := GoParallelism(limit)
	switch {
	case m.GoMaxProcs <= 0 || expected == 0 || m.GoMaxProcs == expected:
		return false
	case m.GoMaxProcs == CountFloor.Of(limit):
		p.note("metrics: GOMAXPROCS %d at a limit of %dm, rounded down as automaxprocs does", m.GoMaxProcs, limit)
		r.CPU, r.Counting = StartOnly, CountFloor
		p.advise(corev1.ResourceCPU, "remove go.uber.org/automaxprocs from the program and build it with go 1.25 or later in go.mod")
		return true
	case m.GoMaxProcs > expected:
		p.note("metrics: GOMAXPROCS %d at a limit of %dm does not come from the limit", m.GoMaxProcs, limit)
		r.CPU = KernelOnly
		return true
	}
	// Fewer than expected: the node may have no more cores.
	return false
}

// goVersion judges by the version alone.
func (p *process) goVersion(r *Result) {
	version, where := p.in.Metrics.GoVersion, p.saidBy()
	if version == "" {
		version, where = p.golangTag(), "image"
	}
	minor, ok := goMinor(version)
	switch {
	case !ok:
		p.note("Go version unknown: GOMAXPROCS may not follow the limit")
		r.CPU = KernelOnly
	case minor < 25:
		p.note("Go 1.%d (%s): GOMAXPROCS does not follow the limit before 1.25", minor, where)
		r.CPU = KernelOnly
	default:
		p.note("Go 1.%d (%s), GOMAXPROCS not set: it follows the limit, given go 1.25 or later in go.mod", minor, where)
		r.Counting = CountGo
	}
}

// golangTag is the tag of an image that is golang's own.
func (p *process) golangTag() string {
	segments, tag := splitImage(p.container.Image)
	if runtime, _ := nameRuntime(segments[len(segments)-1]); runtime != v1alpha1.RuntimeGo {
		return ""
	}
	return tag
}

// goMinor reads go1.26.8, 1.26 or 1.26-alpine; 2 and later count as newest.
func goMinor(version string) (int, bool) {
	version = strings.TrimPrefix(strings.TrimPrefix(version, "devel "), "go")
	major, rest, ok := strings.Cut(version, ".")
	if !ok {
		return 0, false
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end >= 0 {
		rest = rest[:end]
	}
	minor, err := strconv.ParseInt(rest, 10, 16)
	if err != nil || major != "1" {
		return 0, false
	}
	return int(minor), true
}

// judgeGoMemory judges by GOMEMLIMIT; without it the runtime does not look at
// the memory limit at all, and lives with what the kernel gives it.
func (p *process) judgeGoMemory(r *Result) {
	v, ok := p.env.lookup("GOMEMLIMIT")
	if !ok {
		p.autoMemLimit(r)
		return
	}
	if v.origin != literal {
		p.noteEnv("GOMEMLIMIT", v, "")
		r.Memory, r.MemoryDown = StartOnly, StartOnly
		if v.origin == memoryLimit {
			r.Heap = Heap{PercentOfLimit: 100, Source: "env GOMEMLIMIT from " + v.from}
		}
		return
	}
	if v.text == "off" {
		p.noteEnv("GOMEMLIMIT", v, "off")
		return
	}
	limit, ok := parseGoBytes(v.text)
	if !ok {
		p.note("env GOMEMLIMIT=%s is not a number of bytes: the process cannot start with it", quote(v.text))
		return
	}
	p.noteEnv("GOMEMLIMIT", v, quote(v.text))
	if limit == math.MaxInt64 {
		return
	}
	r.Memory, r.MemoryDown = Pinned, Pinned
	r.Heap = Heap{Bytes: limit, Source: "env GOMEMLIMIT=" + quote(v.text)}
	p.advise(corev1.ResourceMemory, "set env GOMEMLIMIT from resourceFieldRef limits.memory, or remove it (now %s)", quote(v.text))
}

// autoMemLimit knows github.com/KimMachineGun/automemlimit by its variable.
func (p *process) autoMemLimit(r *Result) {
	v, ok := p.env.lookup("AUTOMEMLIMIT")
	if !ok || v.origin == literal && v.text == "off" {
		return
	}
	r.Memory, r.MemoryDown = StartOnly, StartOnly
	if v.origin != literal {
		p.noteEnv("AUTOMEMLIMIT", v, "")
		return
	}
	ratio, err := strconv.ParseFloat(v.text, 64)
	if err != nil || !(ratio > 0 && ratio <= 1) {
		ratio = 0.9 // The package's default.
	}
	p.note("env AUTOMEMLIMIT sets GOMEMLIMIT to %s%% of the limit at start", formatPercent(ratio*100))
	r.Heap = Heap{PercentOfLimit: ratio * 100, Source: "env AUTOMEMLIMIT"}
}

// parseGoBytes reads GOMEMLIMIT as the runtime does: digits, then nothing, B,
// or one of KiB, MiB, GiB, TiB. Zero is a limit too, and told is nothing.
func parseGoBytes(s string) (int64, bool) {
	digits, shift := s, 0
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if d, ok := strings.CutSuffix(s, unit); ok {
			digits, shift = d, 10*(i+1)
		}
	}
	if shift == 0 {
		digits = strings.TrimSuffix(s, "B")
	}
	return parseShifted(digits, shift)
}

// parseShifted reads plain digits and multiplies by a power of two.
func parseShifted(digits string, shift int) (int64, bool) {
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || n > math.MaxInt64>>shift {
		return 0, false
	}
	return int64(n) << shift, true
}
