package prometheus

import (
	"bytes"
	"strconv"
	"unsafe"

	"github.com/prometheus/common/model"
)

// series is one series of an answer: what was read at which instants, in
// seconds since 1970.
type series struct {
	metric model.Metric
	ends   []int64
	values []float64
}

// within drops, in place, what was not asked for.
func (s series) within(asked span) series {
	kept := 0
	for i, end := range s.ends {
		if asked.covers(end) {
			s.ends[kept], s.values[kept] = end, s.values[i]
			kept++
		}
	}
	s.ends, s.values = s.ends[:kept], s.values[:kept]
	return s
}

// matrixStart is how every known server begins a matrix. It can stand in no
// JSON string, where its quotes would be escaped.
const matrixStart = `"data":{"resultType":"matrix","result":[`

// matrixStartWithin bounds the search; before the data stand a status, a flag
// and perhaps a few warnings.
const matrixStartWithin = 4 << 10

// cutMatrix decodes the series of a range query's answer and returns the body
// with an empty result in their place, for the library to judge. The library
// decodes a matrix at 50 MB/s, which would be most of a load's time.
//
// It knows only the form in which servers write, without white space, escapes
// or fractions of seconds. Of anything else it is false, and the library's
// decoder decides on the whole body. n is how many instants were asked for.
func cutMatrix(body []byte, n int) (all []series, envelope []byte, ok bool) {
	at := bytes.Index(body[:min(len(body), matrixStartWithin)], []byte(matrixStart))
	if at < 0 {
		return nil, nil, false
	}
	start := at + len(matrixStart)
	p := parser{rest: body[start:], ok: true}
	if !p.take(']') {
		for {
			all = append(all, p.series(n))
			if !p.more(']') {
				break
			}
		}
	}
	if !p.ok {
		return nil, nil, false
	}
	end := len(body) - len(p.rest) - len("]")
	envelope = make([]byte, 0, start+len(body)-end)
	envelope = append(envelope, body[:start]...)
	return all, append(envelope, body[end:]...), true
}

// parser reads the compact form of JSON. Once ok is false nothing else counts.
type parser struct {
	rest []byte
	ok   bool
}

// take drops c if it comes next.
func (p *parser) take(c byte) bool {
	if len(p.rest) > 0 && p.rest[0] == c {
		p.rest = p.rest[1:]
		return true
	}
	return false
}

func (p *parser) must(text string) {
	if len(p.rest) < len(text) || string(p.rest[:len(text)]) != text {
		p.ok = false
		return
	}
	p.rest = p.rest[len(text):]
}

// more reports whether a list goes on after a comma; else it must be closed.
func (p *parser) more(closing byte) bool {
	if !p.ok || p.take(closing) {
		return false
	}
	p.ok = p.take(',')
	return p.ok
}

func (p *parser) series(n int) series {
	s := series{metric: model.Metric{}, ends: make([]int64, 0, n), values: make([]float64, 0, n)}
	p.must(`{"metric":{`)
	if !p.take('}') {
		for {
			name := p.text()
			p.must(`:`)
			s.metric[model.LabelName(name)] = model.LabelValue(p.text())
			if !p.more('}') {
				break
			}
		}
	}
	p.must(`,"values":[`)
	for p.ok {
		p.must(`[`)
		end := p.seconds()
		p.must(`,`)
		s.ends, s.values = append(s.ends, end), append(s.values, p.number())
		p.must(`]`)
		if !p.more(']') {
			break
		}
	}
	p.must(`}`)
	return s
}

// quoted returns what stands between quotes; it may hold no escapes, and
// nothing but printable ASCII.
func (p *parser) quoted() []byte {
	if !p.take('"') {
		p.ok = false
		return nil
	}
	for i, c := range p.rest {
		if c == '"' {
			text := p.rest[:i]
			p.rest = p.rest[i+1:]
			return text
		}
		if c == '\\' || c < ' ' || c > '~' {
			break
		}
	}
	p.ok = false
	return nil
}

func (p *parser) text() string { return string(p.quoted()) }

// number reads a value, which is quoted.
func (p *parser) number() float64 {
	text := p.quoted()
	if len(text) == 0 {
		p.ok = false
		return 0
	}
	// The string lives for the call only, and the bytes do not change.
	v, err := strconv.ParseFloat(unsafe.String(&text[0], len(text)), 64)
	if err != nil {
		p.ok = false
	}
	return v
}

// seconds reads a whole number of seconds.
func (p *parser) seconds() int64 {
	const mostDigits = 12 // Thirty thousand years; no overflow.
	var v int64
	i := 0
	for i < len(p.rest) && i <= mostDigits && p.rest[i] >= '0' && p.rest[i] <= '9' {
		v = 10*v + int64(p.rest[i]-'0')
		i++
	}
	if i == 0 || i > mostDigits || (i > 1 && p.rest[0] == '0') {
		p.ok = false
		return 0
	}
	p.rest = p.rest[i:]
	return v
}

// seriesOf takes over what the library decoded. Histograms are no samples of
// ours.
func seriesOf(m model.Matrix) []series {
	all := make([]series, 0, len(m))
	for _, row := range m {
		if row == nil {
			continue
		}
		s := series{metric: row.Metric, ends: make([]int64, len(row.Values)), values: make([]float64, len(row.Values))}
		for i, v := range row.Values {
			s.ends[i], s.values[i] = v.Timestamp.Unix(), float64(v.Value)
		}
		all = append(all, s)
	}
	return all
}
