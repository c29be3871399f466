package verdict

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// maxValueBytes bounds an expanded value: Linux refuses a longer string in the
// environment, and variables that double one another would grow without end.
const maxValueBytes = 128 << 10

// hole marks, on both sides, the name of a variable whose value is not known
// here, in a text that refers to it. No variable can contain it.
const hole = "\x00"

// origin is where a value comes from.
type origin int

const (
	// literal: written in the template.
	literal origin = iota
	// cpuLimit, memoryLimit, cpuRequest, memoryRequest: the container's own, by
	// resourceFieldRef, read when the container is created.
	cpuLimit
	memoryLimit
	cpuRequest
	memoryRequest
	// unknown: from elsewhere, and not to be seen here.
	unknown
)

// value is what a variable or a flag is set to.
type value struct {
	// text is the literal, with holes where it refers to what is not known; it
	// is empty for other origins.
	text   string
	origin origin
	// from says where a value that is not literal comes from.
	from string
	// scaled says that a resource's value comes in another unit than cores or
	// bytes.
	scaled bool
}

// environment is the variables of a container, as the kubelet would set them.
type environment struct {
	values map[string]value
	// elsewhere are the sources of envFrom.
	elsewhere []string
}

func newEnvironment(c corev1.Container) environment {
	e := environment{values: make(map[string]value, len(c.Env))}
	for _, from := range c.EnvFrom {
		e.elsewhere = append(e.elsewhere, describeEnvFrom(from))
	}
	// In order, since $(VAR) sees only earlier variables; a duplicate's last
	// value is what the process gets.
	for _, v := range c.Env {
		switch {
		case v.Value != "":
			e.values[v.Name] = value{text: e.expand(strings.ReplaceAll(v.Value, hole, ""))}
		case v.ValueFrom != nil:
			e.values[v.Name] = fromSource(v.ValueFrom, c.Name)
		default:
			e.values[v.Name] = value{}
		}
	}
	return e
}

// lookup returns the value of a variable that is set and not empty. A literal
// that consists of a reference to another variable has that one's origin.
func (e environment) lookup(name string) (value, bool) {
	v, ok := e.values[name]
	if !ok || v.origin == literal && v.text == "" {
		return value{}, false
	}
	return e.resolve(v), true
}

// resolve gives a literal with a hole the origin of what the hole refers to.
func (e environment) resolve(v value) value {
	if v.origin != literal {
		return v
	}
	_, rest, found := strings.Cut(v.text, hole)
	name, _, closed := strings.Cut(rest, hole)
	if !found || !closed {
		return v
	}
	referred, ok := e.values[name]
	if !ok || referred.origin == literal {
		referred = value{origin: unknown, from: "variable " + name + " from elsewhere"}
	}
	referred.text = v.text
	return referred
}

// expand replaces $(VAR) as the kubelet does: $$ is a dollar sign, and a
// reference to nothing stays as it is.
func (e environment) expand(s string) string {
	var b strings.Builder
	for s != "" && b.Len() <= maxValueBytes {
		before, rest, found := strings.Cut(s, "$")
		b.WriteString(before)
		if !found {
			break
		}
		name, after, closed := enclosed(rest, '(', ')')
		switch {
		case strings.HasPrefix(rest, "$"):
			b.WriteByte('$')
			s = rest[1:]
		case closed:
			b.WriteString(e.reference(name, "$("+name+")"))
			s = after
		default:
			b.WriteByte('$')
			s = rest
		}
	}
	return cut(b.String(), maxValueBytes)
}

// expandShell replaces $VAR and ${VAR} as a shell does with variables of the
// template; others may be set by the image or the script, and stay.
func (e environment) expandShell(s string) string {
	var b strings.Builder
	for s != "" && b.Len() <= maxValueBytes {
		before, rest, found := strings.Cut(s, "$")
		b.WriteString(before)
		if !found {
			break
		}
		name, after := rest[:nameLength(rest)], rest[nameLength(rest):]
		written := "$" + name
		if inner, tail, closed := enclosed(rest, '{', '}'); closed {
			name, after, written = inner, tail, "${"+inner+"}"
		}
		b.WriteString(e.reference(name, written))
		s = after
	}
	return cut(b.String(), maxValueBytes)
}

// enclosed cuts a name in brackets off the front of s. A name has no more than
// a kilobyte: without a bound, brackets that never close would cost their square.
func enclosed(s string, opening, closing byte) (name, after string, ok bool) {
	if s == "" || s[0] != opening {
		return "", "", false
	}
	end := strings.IndexByte(cut(s, 1<<10), closing)
	if end < 0 {
		return "", "", false
	}
	return s[1:end], s[end+1:], true
}

// reference is what stands for a variable in a text: its literal, a hole, or
// the reference itself where nothing can have set it.
func (e environment) reference(name, asWritten string) string {
	v, ok := e.values[name]
	switch {
	case ok && v.origin == literal:
		return v.text
	case ok, len(e.elsewhere) > 0 && name != "" && nameLength(name) == len(name):
		return hole + name + hole
	}
	return asWritten
}

// show makes a text with holes fit for people.
func show(text string) string {
	for {
		before, rest, found := strings.Cut(text, hole)
		if !found {
			return text
		}
		name, after, closed := strings.Cut(rest, hole)
		if !closed {
			return before + rest
		}
		text = before + "$(" + name + ")" + after
	}
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n]
}

func fromSource(source *corev1.EnvVarSource, container string) value {
	switch {
	case source.ResourceFieldRef != nil:
		return fromResourceField(source.ResourceFieldRef, container)
	case source.ConfigMapKeyRef != nil:
		return value{origin: unknown, from: fmt.Sprintf("ConfigMap %s, key %s", source.ConfigMapKeyRef.Name, source.ConfigMapKeyRef.Key)}
	case source.SecretKeyRef != nil:
		return value{origin: unknown, from: fmt.Sprintf("Secret %s, key %s", source.SecretKeyRef.Name, source.SecretKeyRef.Key)}
	case source.FieldRef != nil:
		return value{origin: unknown, from: "field " + source.FieldRef.FieldPath}
	}
	return value{origin: unknown, from: "an unknown source"}
}

func fromResourceField(ref *corev1.ResourceFieldSelector, container string) value {
	v := value{origin: unknown, from: ref.Resource}
	if ref.ContainerName != "" && ref.ContainerName != container {
		v.from += " of container " + ref.ContainerName
		return v
	}
	switch ref.Resource {
	case "limits.cpu":
		v.origin = cpuLimit
	case "limits.memory":
		v.origin = memoryLimit
	case "requests.cpu":
		v.origin = cpuRequest
	case "requests.memory":
		v.origin = memoryRequest
	}
	if v.origin != unknown && !ref.Divisor.IsZero() {
		if divisor := ref.Divisor.String(); divisor != "1" {
			v.from += " in units of " + divisor
			v.scaled = true
		}
	}
	return v
}

func describeEnvFrom(from corev1.EnvFromSource) string {
	switch {
	case from.ConfigMapRef != nil:
		return "ConfigMap " + from.ConfigMapRef.Name
	case from.SecretRef != nil:
		return "Secret " + from.SecretRef.Name
	}
	return "an unknown source"
}
