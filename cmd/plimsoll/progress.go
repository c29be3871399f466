package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// progress shows on a terminal how far something is and how long it may take;
// nil where there is no terminal. What it gives is safe for concurrent use.
func progress(f *os.File, doing string) func(done, total int) {
	if !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return (&progressLine{to: f, doing: doing, now: time.Now}).show
}

// progressLine is a line that is written over and over.
type progressLine struct {
	to    io.Writer
	doing string
	now   func() time.Time

	mu             sync.Mutex
	started, shown time.Time
	done, total    int
}

// redrawEvery keeps a terminal readable, and a fast replay fast.
const redrawEvery = 100 * time.Millisecond

// clearLine takes away what stands on the present line.
const clearLine = "\r\x1b[K"

func (p *progressLine) show(done, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.started.IsZero() || p.done >= p.total && (total != p.total || done <= total/2) { // One begins.
		p.started, p.shown, p.done = now, time.Time{}, 0
	}
	if done < p.done {
		return // Several goroutines tell, and this one came late.
	}
	p.done, p.total = done, total
	switch {
	case done >= total:
		fmt.Fprint(p.to, clearLine)
	case now.Sub(p.shown) >= redrawEvery:
		p.shown = now
		fmt.Fprint(p.to, clearLine+progressText(p.doing, now.Sub(p.started), done, total))
	}
}

func progressText(doing string, elapsed time.Duration, done, total int) string {
	text := fmt.Sprintf("%s: %d of %d", doing, done, total)
	if left, ok := remaining(elapsed, done, total); ok {
		text += fmt.Sprintf(", about %s left", left)
	}
	return text
}

// Before this much is done, what is left cannot be told: connections are made,
// and the first answers come at once.
const (
	tellAfter      = 3 * time.Second
	tellAfterShare = 0.02
)

// remaining estimates how much longer something takes, at the pace so far: in
// seconds, above a minute in tens of them, and above ten minutes in minutes, so
// that the last digit does not flicker. False is: too early to say.
func remaining(elapsed time.Duration, done, total int) (time.Duration, bool) {
	if done <= 0 || total <= 0 || elapsed < tellAfter || float64(done) < tellAfterShare*float64(total) {
		return 0, false
	}
	left := time.Duration(float64(elapsed) / float64(done) * float64(max(total-done, 0)))
	step := time.Second
	switch {
	case left > 10*time.Minute:
		step = time.Minute
	case left > time.Minute:
		step = 10 * time.Second
	}
	if rest := left % step; rest > 0 {
		left += step - rest
	}
	return left, true
}

// clearProgress takes a progress line away before something else is written.
func clearProgress(w io.Writer) {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprint(f, clearLine)
	}
}
