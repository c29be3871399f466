package verdict

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/api/shorten"
	"github.com/plimsoll-dev/plimsoll/api/v1alpha1"
)

// process is a container while it is being judged.
type process struct {
	container corev1.Container
	in        Input
	env       environment
	// commands are the programs of command and args, if any is named there.
	commands []invocation
	evidence []string
	advice   []Advice
}

func newProcess(c corev1.Container, in Input) *process {
	p := &process{container: c, in: in, env: newEnvironment(c)}
	argv := make([]string, 0, len(c.Command)+len(c.Args))
	for _, word := range slices.Concat(c.Command, c.Args) {
		argv = append(argv, p.env.expand(strings.ReplaceAll(word, hole, "")))
	}
	p.commands = invocations(argv, p.env.expandShell)
	return p
}

// maxEvidence bounds the evidence: people read it, and status holds it.
const maxEvidence = 32

func (p *process) note(format string, args ...any) {
	if len(p.evidence) >= maxEvidence {
		return
	}
	if line := oneLine(fmt.Sprintf(format, args...)); !slices.Contains(p.evidence, line) {
		p.evidence = append(p.evidence, line)
	}
}

// noteEnv notes a variable and its value. Only values that have been read as a
// number or a flag may be given as what.
func (p *process) noteEnv(name string, v value, what string) {
	switch v.origin {
	case literal:
		p.note("env %s=%s (literal)", name, what)
	case unknown:
		p.note("env %s from %s (value unknown)", name, v.from)
	default:
		p.note("env %s from %s (read at start)", name, v.from)
	}
}

// detect settles the runtime. The strongest evidence comes first: the user's
// word, what the process itself exports, the program that is started, a variable
// that only one runtime reads, and the name of the image. Of variables, those of
// the JVM and Node come before those of Go: where a container has both, the more
// cautious verdict on memory is the safer mistake.
func (p *process) detect() v1alpha1.Runtime {
	for _, ask := range []func() (v1alpha1.Runtime, string){
		p.fromPolicy,
		p.fromMetrics,
		p.fromCommand,
		p.fromImage,
		p.fromEnv,
	} {
		if runtime, why := ask(); runtime != "" {
			p.note("%s", why)
			return runtime
		}
	}
	return v1alpha1.RuntimeGeneric
}

func (p *process) fromPolicy() (v1alpha1.Runtime, string) {
	switch p.in.Override {
	case v1alpha1.RuntimeGo, v1alpha1.RuntimeJVM, v1alpha1.RuntimeNode, v1alpha1.RuntimeGeneric:
		return p.in.Override, "policy: runtime " + string(p.in.Override)
	}
	return "", ""
}

func (p *process) fromMetrics() (v1alpha1.Runtime, string) {
	m := p.in.Metrics
	switch {
	case m.JVM || m.JVMVersion != "":
		return v1alpha1.RuntimeJVM, p.said(m.JVMVersion, "JVM")
	case m.NodeVersion != "":
		return v1alpha1.RuntimeNode, p.said(m.NodeVersion, "Node.js")
	case m.Go || m.GoVersion != "" || m.GoMaxProcs > 0:
		return v1alpha1.RuntimeGo, p.said(m.GoVersion, "Go")
	}
	return "", ""
}

// said is what metrics say of the process: its version, or else its kind.
func (p *process) said(version, kind string) string {
	switch {
	case version == "":
		return fmt.Sprintf("%s of a %s process", p.saidBy(), kind)
	case kind == "Go": // Go's versions name it.
		return fmt.Sprintf("%s says %s", p.saidBy(), quote(version))
	}
	return fmt.Sprintf("%s says %s %s", p.saidBy(), kind, quote(version))
}

// saidBy is the metric that tells what the process is.
func (p *process) saidBy() string {
	if from := p.in.Metrics.From; from != "" {
		return quote(from)
	}
	return "metrics"
}

func (p *process) fromCommand() (v1alpha1.Runtime, string) {
	for _, command := range p.commands {
		if runtime := programs[command.program]; runtime != "" {
			return runtime, fmt.Sprintf("command runs %s", command.program)
		}
	}
	for _, command := range p.commands {
		for _, arg := range command.args {
			switch {
			case command.program == "" && arg == "-jar", isJVMFlag(arg):
				return v1alpha1.RuntimeJVM, fmt.Sprintf("argument %s is a JVM's", flagName(arg))
			case isNodeFlag(arg):
				return v1alpha1.RuntimeNode, fmt.Sprintf("argument %s is Node's", flagName(arg))
			}
		}
	}
	return "", ""
}

var programs = map[string]v1alpha1.Runtime{
	"java": v1alpha1.RuntimeJVM, "catalina.sh": v1alpha1.RuntimeJVM, "kc.sh": v1alpha1.RuntimeJVM,
	"standalone.sh": v1alpha1.RuntimeJVM,
	"node":          v1alpha1.RuntimeNode, "nodejs": v1alpha1.RuntimeNode, "npm": v1alpha1.RuntimeNode, "npx": v1alpha1.RuntimeNode,
	"yarn": v1alpha1.RuntimeNode, "pnpm": v1alpha1.RuntimeNode, "pm2": v1alpha1.RuntimeNode, "pm2-runtime": v1alpha1.RuntimeNode,
	"ts-node": v1alpha1.RuntimeNode, "next": v1alpha1.RuntimeNode, "nodemon": v1alpha1.RuntimeNode,
	"go": v1alpha1.RuntimeGo,
}

func (p *process) fromImage() (v1alpha1.Runtime, string) {
	runtime, word := imageRuntime(p.container.Image)
	if runtime == "" {
		return "", ""
	}
	return runtime, fmt.Sprintf("image %s looks like %s (%s)", quote(p.container.Image), runtime, quote(word))
}

func (p *process) fromEnv() (v1alpha1.Runtime, string) {
	for _, of := range []struct {
		runtime v1alpha1.Runtime
		names   []string
	}{
		{v1alpha1.RuntimeJVM, slices.Concat(jvmVariables, jvmLastVariables)},
		{v1alpha1.RuntimeNode, nodeVariables},
		{v1alpha1.RuntimeGo, goVariables},
	} {
		for _, name := range of.names {
			if _, ok := p.env.lookup(name); ok {
				return of.runtime, fmt.Sprintf("env %s is read by %s", name, of.runtime)
			}
		}
	}
	return "", ""
}

// workerVariables size worker pools in runtimes that have no verdict of their
// own. They are worth knowing, and change nothing.
var workerVariables = []string{
	"WEB_CONCURRENCY", "RAILS_MAX_THREADS", "PUMA_WORKERS", "GUNICORN_CMD_ARGS", "UVICORN_WORKERS",
	"CELERYD_CONCURRENCY", "OMP_NUM_THREADS", "PYTHON_CPU_COUNT", "TOKIO_WORKER_THREADS", "RAYON_NUM_THREADS",
}

// judgeGeneric leaves Live as it is: what is not known to read its limit once
// is taken to live with what the kernel gives it.
func (p *process) judgeGeneric(r *Result) {
	for _, name := range workerVariables {
		if v, ok := p.env.lookup(name); ok {
			p.note("env %s sizes a pool of workers (%s)", name, describeOrigin(v))
		}
	}
	if name, ok := p.dotnet(); ok {
		p.note("%s: .NET sizes pools by the CPU limit rounded up, and its heap by the memory limit, both at start; "+
			"set memory.adjust AtStart where that matters", name)
		if _, set := p.env.lookup("DOTNET_PROCESSOR_COUNT"); !set {
			r.Counting = CountCeil
		}
	}
	if len(p.evidence) > 0 {
		return
	}
	if len(p.env.elsewhere) > 0 {
		p.note("nothing tells what the process is; envFrom %s may (values unknown)", strings.Join(p.env.elsewhere, ", "))
		return
	}
	p.note("nothing tells what the process is")
}

// dotnet is the first sign of .NET.
func (p *process) dotnet() (string, bool) {
	// From the template and not from the map, for an order that stays.
	for _, v := range p.container.Env {
		if strings.HasPrefix(v.Name, "DOTNET_") || strings.HasPrefix(v.Name, "COMPlus_") {
			return "env " + v.Name, true
		}
	}
	for _, command := range p.commands {
		if command.program == "dotnet" {
			return "command runs dotnet", true
		}
	}
	return "", false
}

// lxcfsFiles are files that LXCFS puts in place of the kernel's own.
var lxcfsFiles = []string{
	"/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/uptime", "/proc/swaps", "/proc/diskstats",
	"/sys/devices/system/cpu/online", "/sys/devices/system/cpu",
}

// noteMounts says that /proc follows the limits. It changes no verdict: what
// reads the limit at start does so still.
func (p *process) noteMounts() {
	for _, mount := range p.container.VolumeMounts {
		if slices.Contains(lxcfsFiles, strings.TrimSuffix(mount.MountPath, "/")) {
			p.note("LXCFS at %s: the process can see changed limits there", mount.MountPath)
			return
		}
	}
}

func describeOrigin(v value) string {
	switch v.origin {
	case literal:
		return "literal"
	case unknown:
		return "value unknown"
	}
	return "from " + v.from
}

// oneLine keeps names from manifests, which no API server has seen, from
// breaking a line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// quote shortens what others wrote, and makes it fit for one line.
func quote(s string) string {
	const longest = 80
	quoted := fmt.Sprintf("%q", show(s))
	quoted = quoted[1 : len(quoted)-1]
	return shorten.Bytes(quoted, longest)
}
