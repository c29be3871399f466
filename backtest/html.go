package backtest

import (
	"errors"
	"io"
)

// WriteHTML is still to come.
func (o *Outcome) WriteHTML(io.Writer, []string) error { return errors.New("html: not yet") }
