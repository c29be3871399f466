package verdict

import (
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// nodeVariables are read by Node alone.
var nodeVariables = []string{"NODE_OPTIONS", "UV_THREADPOOL_SIZE"}

// Options of V8 that bear on memory, with hyphens; underscores mean the same.
const (
	nodeOldSpace        = "--max-old-space-size"
	nodeOldSpacePercent = "--max-old-space-size-percentage"
	nodeSemiSpace       = "--max-semi-space-size"
)

// semiSpaces is how many semi-spaces V8's young generation holds.
const semiSpaces = 3

// judgeNode: one thread runs JavaScript and a small pool beside it is fixed, so
// that the kernel's quota is all there is to CPU. V8 sizes its heap at start,
// from its flags or else from the limit.
func (p *process) judgeNode(r *Result) {
	r.Memory, r.MemoryDown = StartOnly, StartOnly
	if v, ok := p.env.lookup("UV_THREADPOOL_SIZE"); ok {
		p.note("env UV_THREADPOOL_SIZE sizes the thread pool (%s)", describeOrigin(v))
	}
	if v, ok := p.env.lookup("NODE_OPTIONS"); ok {
		if v.origin != literal && v.text == "" {
			p.noteEnv("NODE_OPTIONS", v, "")
		} else {
			p.nodeOptions(r, splitWords(v.text), "env NODE_OPTIONS")
		}
	}
	for _, command := range p.commands {
		p.nodeOptions(r, scriptOptions(command), "the command line")
	}
}

// scriptOptions are the arguments that Node itself sees: up to the script.
func scriptOptions(command invocation) []string {
	if command.program != "node" && command.program != "nodejs" {
		return command.args
	}
	for i := 0; i < len(command.args); i++ {
		switch arg := hyphens(command.args[i]); {
		case !strings.HasPrefix(arg, "-") && !isOpen(arg):
			return command.args[:i]
		case arg == nodeOldSpace, arg == nodeSemiSpace, arg == "-r", arg == "--require", arg == "--import":
			i++ // The value is the next word.
		}
	}
	return command.args
}

func isNodeFlag(arg string) bool {
	arg = hyphens(arg)
	return strings.HasPrefix(arg, nodeOldSpace) || strings.HasPrefix(arg, nodeSemiSpace)
}

// hyphens writes the name of an option with hyphens throughout.
func hyphens(arg string) string {
	name, rest, found := strings.Cut(arg, "=")
	name = strings.ReplaceAll(name, "_", "-")
	if found {
		return name + "=" + rest
	}
	return name
}

// nodeOptions takes options into account; a later one replaces an earlier.
func (p *process) nodeOptions(r *Result, args []string, where string) {
	for i, arg := range args {
		name, text, found := strings.Cut(hyphens(arg), "=")
		shown := quote(arg)
		if !found && i+1 < len(args) {
			text = args[i+1]
			shown += " " + quote(text)
		}
		switch name {
		case nodeOldSpace:
			p.nodeOldSpace(r, text, shown, where)
		case nodeOldSpacePercent:
			p.nodePercent(r, text, shown, where)
		case nodeSemiSpace:
			if bytes, ok := parseMiB(text); ok {
				p.note("%s in %s", shown, where)
				r.Heap.YoungBytes = times(bytes, semiSpaces)
			}
		}
	}
}

func (p *process) nodeOldSpace(r *Result, text, shown, where string) {
	source := shown + " in " + where
	bytes, ok := parseMiB(text)
	switch {
	case ok && bytes == 0: // V8 takes zero for its default.
		p.setNodeHeap(r, Heap{})
		r.Memory, r.MemoryDown = StartOnly, StartOnly
		p.advice = withoutMemory(p.advice)
		return
	case ok:
		p.note("%s", source)
		r.Memory, r.MemoryDown = Pinned, Pinned
	case isOpen(text):
		v := p.env.resolve(value{text: text})
		p.note("%s (%s)", source, p.describeOpen(text))
		if v.origin == memoryLimit || v.origin == memoryRequest {
			p.setNodeHeap(r, Heap{Source: source})
			if v.origin == memoryLimit {
				r.Heap.PercentOfLimit = 100
			}
			r.Memory, r.MemoryDown = StartOnly, StartOnly
			p.advice = withoutMemory(p.advice)
			return
		}
		r.Memory, r.MemoryDown = Pinned, Pinned
	default:
		p.note("%s cannot be read, and does not count", source)
		return
	}
	p.setNodeHeap(r, Heap{Bytes: bytes, Source: source})
	p.advice = withoutMemory(p.advice)
	p.advise(corev1.ResourceMemory, "remove %s from %s; Node then sizes its heap by the memory limit at start", shown, where)
}

func (p *process) nodePercent(r *Result, text, shown, where string) {
	percent, err := strconv.ParseFloat(text, 64)
	if err != nil || !(percent > 0 && percent <= 100) {
		p.note("%s in %s cannot be read, and does not count", shown, where)
		return
	}
	p.note("%s in %s", shown, where)
	p.advice = withoutMemory(p.advice)
	p.setNodeHeap(r, Heap{PercentOfLimit: percent, Source: shown + " in " + where})
	r.Memory, r.MemoryDown = StartOnly, StartOnly
}

// setNodeHeap replaces the old space and keeps the young generation.
func (p *process) setNodeHeap(r *Result, h Heap) {
	h.YoungBytes = r.Heap.YoungBytes
	r.Heap = h
}

// parseMiB reads a whole number of MiB, in bytes.
func parseMiB(text string) (int64, bool) { return parseShifted(text, 20) }

// times multiplies without overflow; n is not negative.
func times(n, factor int64) int64 {
	if n > math.MaxInt64/factor {
		return math.MaxInt64
	}
	return n * factor
}
