package verdict

import (
	"math"
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// jvmVariables hold options that come before those of the command line, in the
// order in which they are read. The first two are the JVM's own and its
// launcher's; the others are passed on by the scripts of images.
var jvmVariables = []string{
	"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS",
	"JAVA_OPTS", "JAVA_OPTIONS", "JAVA_ARGS", "JVM_OPTS", "JVM_ARGS", "JAVA_OPTS_APPEND", "JAVA_OPTS_KC_HEAP",
	"CATALINA_OPTS", "ES_JAVA_OPTS", "OPENSEARCH_JAVA_OPTS", "LS_JAVA_OPTS", "KAFKA_HEAP_OPTS", "KAFKA_OPTS", "SOLR_JAVA_MEM",
}

// jvmLastVariables hold options that come after those of the command line.
var jvmLastVariables = []string{"_JAVA_OPTIONS"}

// Defaults of the JVM.
const (
	jvmMaxRAMPercent = 25
	jvmMinRAMPercent = 50
)

// jvmSize is a size among a JVM's options; the last one counts.
type jvmSize struct {
	// set says that the option is there; bytes is zero where its value is not
	// known here.
	set    bool
	bytes  int64
	origin origin
	// option is the option as written, where says where it stands.
	option, where string
}

func (s jvmSize) source() string { return s.option + " in " + s.where }

// jvmPercent is a share of the memory; percent is zero where it is not known.
type jvmPercent struct {
	set     bool
	percent float64
	source  string
}

// jvm is the options that bear on resources.
type jvm struct {
	heap, maxRAM, metaspace, direct, codeCache jvmSize
	maxPercent, minPercent                     jvmPercent
	maxFraction, minFraction                   jvmPercent
	// processors is ActiveProcessorCount; anything set keeps the limit out.
	processors bool
	// ignoresContainer is -XX:-UseContainerSupport, with its place.
	ignoresContainer string
}

// judgeJVM: pools and heap are sized at start. A larger CPU quota still helps,
// as the application's own threads are not bound by those pools; so
// ActiveProcessorCount, which only fixes their size, does not pin CPU as
// GOMAXPROCS does.
func (p *process) judgeJVM(r *Result) {
	r.CPU, r.Memory, r.MemoryDown = KernelOnly, StartOnly, StartOnly
	options := p.jvmOptions()
	if !options.processors && options.ignoresContainer == "" {
		r.Counting = CountCeil
	}
	r.Heap = options.told()
	p.heapSeen(&r.Heap)
	switch {
	case options.heap.set && options.heap.origin == literal, options.heap.set && options.heap.origin == unknown:
		r.Memory = Pinned
		p.advise(corev1.ResourceMemory, "replace %s in %s by -XX:MaxRAMPercentage=%d",
			options.heap.option, options.heap.where, p.percentFor(options.heap.bytes))
	case options.heap.set:
		// Taken from a limit or request of the container at start.
	case options.maxRAM.set && options.maxRAM.origin != memoryLimit:
		r.Memory = Pinned
		p.advise(corev1.ResourceMemory, "remove %s from %s", options.maxRAM.option, options.maxRAM.where)
	case options.ignoresContainer != "":
		r.Memory = Pinned
		p.advise(corev1.ResourceMemory, "remove -XX:-UseContainerSupport from %s", options.ignoresContainer)
	}
}

// percentFor is the share of the present limit that a fixed heap is, within
// what leaves room for the rest of a JVM; 75 where either is not known.
func (p *process) percentFor(heapBytes int64) int64 {
	limit := p.container.Resources.Limits.Memory().Value()
	if limit <= 0 || heapBytes <= 0 {
		return 75
	}
	return int64(min(max(math.Floor(float64(heapBytes)/float64(limit)*100), 10), 80))
}

// told is what the options say the JVM may use.
func (o jvm) told() Heap {
	h := Heap{
		MetaspaceBytes: o.metaspace.bytes,
		DirectBytes:    o.direct.bytes,
		CodeCacheBytes: o.codeCache.bytes,
	}
	maximum, minimum := o.percentages()
	if o.heap.set {
		h.Source = o.heap.source()
		h.Bytes = o.heap.bytes
		if o.heap.origin == memoryLimit {
			h.PercentOfLimit = 100
		}
		return h
	}
	h.PercentOfLimit, h.SmallPercent, h.Source = maximum.percent, minimum.percent, maximum.source
	switch {
	case o.ignoresContainer != "" && !o.maxRAM.set:
		h.PercentOfLimit, h.SmallPercent, h.Source = 0, 0, ""
	case o.maxRAM.set && o.maxRAM.origin != memoryLimit:
		bytes := h.At(o.maxRAM.bytes)
		h.PercentOfLimit, h.SmallPercent = 0, 0
		h.Bytes, h.Source = bytes, o.maxRAM.source()
	}
	return h
}

// heapSlack is by how much the heap of a running JVM may differ from what it was
// told: collectors round to regions, and some leave a survivor space out.
const heapSlack = 1.1

// heapSeen adds the heap of the running process, where the template does not
// fix one: a script of the image, a file of arguments or a variable from
// elsewhere may. A heap that is no more than the share told, at the limit in
// force, is that share and follows the limit. Without a limit nothing tells a
// fixed heap from a share of the node, which would be no need of the process.
// With one it may be either, and is treated as both: memory does not fall below
// it, and the limit does not rise because use follows it.
func (p *process) heapSeen(h *Heap) {
	m := p.in.Metrics
	limit := m.MemoryLimitBytes
	if limit <= 0 {
		limit = p.container.Resources.Limits.Memory().Value()
	}
	if m.HeapBytes <= 0 || h.Bytes > 0 || limit <= 0 {
		return
	}
	switch {
	case m.HeapBytes >= limit:
		// It is the node's memory that the JVM looks at, or a mistake.
		p.note("metrics: the heap may be %s at a limit of %s, and does not count", formatBytes(m.HeapBytes), formatBytes(limit))
		return
	case float64(m.HeapBytes) <= heapSlack*float64(h.At(limit)):
		return
	}
	h.SeenBytes = m.HeapBytes
	if h.PercentOfLimit > 0 {
		h.PercentOfLimit, h.SmallPercent, h.Source = 100*float64(m.HeapBytes)/float64(limit), 0, p.saidBy()
	}
	p.note("metrics: the heap may be %s at a limit of %s, more than the template tells", formatBytes(m.HeapBytes), formatBytes(limit))
}

// percentages are the shares for much and for little memory. The fractions are
// older names, which yield to the percentages.
func (o jvm) percentages() (maximum, minimum jvmPercent) {
	maximum = jvmPercent{percent: jvmMaxRAMPercent, source: "the JVM's default"}
	minimum = jvmPercent{percent: jvmMinRAMPercent}
	for _, candidate := range []jvmPercent{o.maxFraction, o.maxPercent} {
		if candidate.set {
			maximum = candidate
		}
	}
	for _, candidate := range []jvmPercent{o.minFraction, o.minPercent} {
		if candidate.set {
			minimum = candidate
		}
	}
	if maximum.percent == 0 {
		minimum = jvmPercent{}
	}
	return maximum, minimum
}

// jvmOptions reads all options in the order in which the JVM does.
func (p *process) jvmOptions() jvm {
	var o jvm
	for _, name := range jvmVariables {
		p.jvmVariable(&o, name)
	}
	for _, command := range p.commands {
		for _, arg := range javaOptions(command) {
			p.jvmOption(&o, arg, "the command line")
		}
	}
	for _, name := range jvmLastVariables {
		p.jvmVariable(&o, name)
	}
	return o
}

func (p *process) jvmVariable(o *jvm, name string) {
	v, ok := p.env.lookup(name)
	if !ok {
		return
	}
	if v.origin != literal && v.text == "" {
		p.noteEnv(name, v, "")
		return
	}
	for _, arg := range splitWords(v.text) {
		if strings.HasPrefix(arg, hole) {
			p.noteEnv(name, p.env.resolve(value{text: arg}), "")
		}
		p.jvmOption(o, arg, "env "+name)
	}
}

// javaOptions are the arguments that the JVM sees: up to the main class or the
// jar, where the program's own begin. Arguments to something else may be passed
// on to a JVM, and all count.
func javaOptions(command invocation) []string {
	if command.program != "java" {
		return command.args
	}
	for i := 0; i < len(command.args); i++ {
		switch arg := command.args[i]; {
		case arg == "-jar" || arg == "-m" || arg == "--module":
			return command.args[:i]
		case javaTakesNext[arg]:
			i++
		case !strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "@") && !isOpen(arg):
			return command.args[:i]
		}
	}
	return command.args
}

// javaTakesNext are options of the launcher whose value is the next word.
var javaTakesNext = map[string]bool{
	"-cp": true, "-classpath": true, "--class-path": true, "-p": true, "--module-path": true,
	"--add-modules": true, "--add-opens": true, "--add-exports": true,
}

// isJVMFlag says whether an argument can only be meant for a JVM.
func isJVMFlag(arg string) bool {
	return strings.HasPrefix(arg, "-Xmx") || strings.HasPrefix(arg, "-Xms") || strings.HasPrefix(arg, "-XX:")
}

// jvmOption takes one option into account.
func (p *process) jvmOption(o *jvm, arg, where string) {
	switch {
	case arg == "-XX:-UseContainerSupport":
		o.ignoresContainer = where
		p.note("%s in %s: the JVM does not look at its limits", arg, where)
		return
	case arg == "-XX:+UseContainerSupport":
		o.ignoresContainer = ""
		return
	case strings.HasPrefix(arg, "@") && len(arg) > 1:
		p.note("argument file %s in %s is not read", quote(path.Base(arg)), where)
		return
	}
	for _, size := range []struct {
		prefix string
		to     *jvmSize
	}{
		{"-Xmx", &o.heap},
		{"-XX:MaxHeapSize=", &o.heap},
		{"-XX:MaxRAM=", &o.maxRAM},
		{"-XX:MaxMetaspaceSize=", &o.metaspace},
		{"-XX:MaxDirectMemorySize=", &o.direct},
		{"-XX:ReservedCodeCacheSize=", &o.codeCache},
	} {
		if text, ok := strings.CutPrefix(arg, size.prefix); ok {
			p.jvmSize(size.to, text, arg, where)
			return
		}
	}
	p.jvmNumber(o, arg, where)
}

// jvmNumber takes an option into account whose value is a plain number.
func (p *process) jvmNumber(o *jvm, arg, where string) {
	for _, number := range []struct {
		prefix string
		to     *jvmPercent
		of     func(float64) float64
	}{
		{"-XX:MaxRAMPercentage=", &o.maxPercent, func(n float64) float64 { return n }},
		{"-XX:MinRAMPercentage=", &o.minPercent, func(n float64) float64 { return n }},
		{"-XX:MaxRAMFraction=", &o.maxFraction, func(n float64) float64 { return 100 / n }},
		{"-XX:MinRAMFraction=", &o.minFraction, func(n float64) float64 { return 100 / n }},
		{"-XX:ActiveProcessorCount=", nil, nil},
	} {
		text, ok := strings.CutPrefix(arg, number.prefix)
		if !ok {
			continue
		}
		if number.to == nil {
			p.note("%s in %s: pools do not follow the CPU limit", flagShown(arg), where)
			o.processors = true
			return
		}
		p.jvmPercent(number.to, text, arg, where, number.of)
		return
	}
}

func (p *process) jvmPercent(to *jvmPercent, text, arg, where string, of func(float64) float64) {
	if isOpen(text) {
		*to = jvmPercent{set: true, source: flagShown(arg) + " in " + where}
		p.note("%s in %s (value unknown)", flagShown(arg), where)
		return
	}
	n, err := strconv.ParseFloat(text, 64)
	if percent := of(n); err == nil && n > 0 && percent > 0 && percent <= 100 {
		*to = jvmPercent{set: true, percent: percent, source: flagShown(arg) + " in " + where}
		p.note("%s in %s", flagShown(arg), where)
		return
	}
	p.note("%s in %s cannot be read, and does not count", flagShown(arg), where)
}

func (p *process) jvmSize(to *jvmSize, text, arg, where string) {
	size := jvmSize{set: true, option: flagShown(arg), where: where}
	switch bytes, ok := parseJVMBytes(text); {
	case ok && bytes > 0:
		size.bytes = bytes
		p.note("%s in %s", size.option, where)
	case ok:
		// Zero asks for the default.
		size = jvmSize{}
	case isOpen(text):
		size.origin, size.bytes = p.env.resolve(value{text: text}).origin, 0
		if size.origin == literal {
			size.origin = unknown
		}
		p.note("%s in %s (%s)", size.option, where, p.describeOpen(text))
	default:
		p.note("%s in %s cannot be read, and does not count", size.option, where)
		return
	}
	*to = size
}

// isOpen says whether a text refers to something that is not known here: a
// variable from elsewhere, or one that a script sets.
func isOpen(text string) bool { return strings.Contains(text, hole) || strings.Contains(text, "$") }

func (p *process) describeOpen(text string) string {
	if v := p.env.resolve(value{text: text}); v.origin != literal && v.origin != unknown {
		return v.from + ", read at start"
	}
	return "value unknown"
}

// parseJVMBytes reads a size as the JVM does: decimal or 0x, then one of k, m,
// g and t in either case.
func parseJVMBytes(s string) (int64, bool) {
	if hex, ok := strings.CutPrefix(s, "0x"); ok {
		n, err := strconv.ParseUint(hex, 16, 63)
		return int64(n), err == nil
	}
	if s == "" {
		return 0, false
	}
	shift := 10 * (1 + strings.IndexByte("kmgt", s[len(s)-1]|0x20))
	if shift > 0 {
		s = s[:len(s)-1]
	}
	return parseShifted(s, shift)
}

// flagName is an option up to its value.
func flagName(arg string) string {
	if strings.HasPrefix(arg, "-Xm") {
		return cut(arg, len("-Xmx"))
	}
	name, _, _ := strings.Cut(arg, "=")
	return quote(name)
}

// flagShown is an option as people may see it: whole where its value is a
// number or a reference, and that is all that options read here have.
func flagShown(arg string) string { return quote(arg) }
