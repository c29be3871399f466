package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/config"
	"go.yaml.in/yaml/v3"

	"github.com/plimsoll-dev/plimsoll/history/prometheus"
)

// decoder reads YAML into structs and goes on after a fault, which the library
// does not: it takes the first error of a type's own decoding for the last.
type decoder struct {
	// name is the file's; empty where there is none.
	name string
	// lines are where each path begins that the file has.
	lines  map[string]int
	faults []fault
	// broken means that the text is no YAML, so that nothing is known of it.
	broken bool
}

type fault struct {
	line int // 0: not of a file
	path string
	text string
}

// fault notes that something is wrong at a path; the text says what to write.
// Of one path the first fault counts.
func (d *decoder) fault(path, format string, args ...any) {
	for _, f := range d.faults {
		if f.path == path {
			return
		}
	}
	d.faults = append(d.faults, fault{d.line(path), path, fmt.Sprintf(format, args...)})
}

// line is where the path begins, or the nearest thing around it.
func (d *decoder) line(path string) int {
	for path != "" {
		if line, ok := d.lines[path]; ok {
			return line
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return d.lines[""]
}

func (d *decoder) err() error {
	slices.SortStableFunc(d.faults, func(a, b fault) int { return cmp.Compare(a.line, b.line) })
	var errs []error
	for _, f := range d.faults {
		text := f.text
		if f.path != "" {
			text = f.path + ": " + text
		}
		if f.line > 0 {
			text = fmt.Sprintf("line %d: %s", f.line, text)
		}
		if d.name != "" {
			text = d.name + ": " + text
		}
		errs = append(errs, errors.New(text))
	}
	return errors.Join(errs...)
}

func (d *decoder) document(text []byte, into *File) {
	reader := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	err := reader.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF):
		return // An empty file, which lacks sources.
	case err != nil:
		d.broken = true
		d.fault("", "the file is not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		return
	}
	if root := doc.Content[0]; !null(root) { // Null is a file of comments.
		d.value(root, reflect.ValueOf(into).Elem(), "")
	}
	if err := reader.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		d.fault("", "there is more after the first document (---): write one")
	}
}

// value reads a node into v.
func (d *decoder) value(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if d.lines[path] == 0 { // Else its key has been seen.
		d.lines[path] = n.Line
	}
	switch {
	case v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct:
		v.Set(defaultOf(v.Type().Elem()))
		if !null(n) {
			d.value(n, v.Elem(), path)
		}
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[config.URL]():
		d.mapping(n, v, path)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		d.sequence(n, v, path)
	default:
		d.leaf(n, v, path)
	}
}

// defaultOf is a pointer to a new value of the type.
func defaultOf(t reflect.Type) reflect.Value {
	p := reflect.New(t)
	switch at := p.Interface().(type) {
	case *prometheus.Settings:
		*at = prometheus.DefaultSettings()
	case *MetricsServer:
		*at = DefaultMetricsServer()
	}
	return p
}

func null(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func (d *decoder) sequence(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		d.fault(path, "write a list, each entry after a dash")
		return
	}
	for i, entry := range n.Content {
		v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		d.value(entry, v.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string) {
	fields := fieldsOf(v.Type())
	if n.Kind != yaml.MappingNode {
		d.fault(path, "write fields here: %s", names(fields))
		return
	}
	seen := map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := strings.TrimPrefix(path+"."+key.Value, ".")
		d.lines[at] = key.Line
		f, ok := find(fields, key.Value)
		switch {
		case seen[key.Value]:
			d.fault(at, "the field is written twice: leave one")
		case !ok:
			d.fault(at, "there is no such field: write one of %s", names(fields))
		case f.name == "": // Any name: an entry of a map.
			d.entry(key.Value, value, v.FieldByIndex(f.index), at)
		default:
			d.value(value, v.FieldByIndex(f.index), at)
		}
		seen[key.Value] = true
	}
}

func (d *decoder) entry(key string, n *yaml.Node, m reflect.Value, path string) {
	if m.IsNil() {
		m.Set(reflect.MakeMap(m.Type()))
	}
	entry := reflect.New(m.Type().Elem()).Elem()
	d.value(n, entry, path)
	m.SetMapIndex(reflect.ValueOf(key), entry)
}

// leaf reads what the library reads, and says by itself what was expected: the
// library's messages repeat the value.
func (d *decoder) leaf(n *yaml.Node, v reflect.Value, path string) {
	// A number would be taken for nanoseconds.
	bare := v.Type() == reflect.TypeFor[time.Duration]() && n.Tag != "!!str"
	if null(n) || bare || n.Decode(v.Addr().Interface()) != nil {
		d.fault(path, "write %s", expected(v.Type()))
	}
}

func expected(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "a duration, such as 30s or 5m"
	case reflect.TypeFor[config.URL]():
		return "a URL, such as http://proxy:3128"
	case reflect.TypeFor[config.TLSVersion]():
		return "TLS12 or TLS13"
	}
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Slice:
		return "a list"
	default:
		return "fields with their values"
	}
}

// field is a field of a struct as YAML knows it.
type field struct {
	name  string // empty: the entries of a map, under any name
	index []int
}

// suffix is what the field adds to a path.
func (f field) suffix() string {
	if f.name == "" {
		return ""
	}
	return "." + f.name
}

// fieldsOf are the fields of a struct, with those of structs that are inline.
func fieldsOf(t reflect.Type) []field {
	var all []field
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		switch {
		case name == "-" || !t.Field(i).IsExported():
		case name != "":
			all = append(all, field{name, []int{i}})
		case options == "inline" && t.Field(i).Type.Kind() == reflect.Struct:
			for _, f := range fieldsOf(t.Field(i).Type) {
				all = append(all, field{f.name, append([]int{i}, f.index...)})
			}
		case options == "inline":
			all = append(all, field{"", []int{i}})
		}
	}
	return all
}

// find is the field that the name means: that of this name, else a map that
// takes any.
func find(fields []field, name string) (field, bool) {
	for _, wanted := range []string{name, ""} {
		if i := slices.IndexFunc(fields, func(f field) bool { return f.name == wanted }); i >= 0 {
			return fields[i], true
		}
	}
	return field{}, false
}

func names(fields []field) string {
	var all []string
	for _, f := range fields {
		if f.name != "" {
			all = append(all, f.name)
		}
	}
	return strings.Join(all, ", ")
}
